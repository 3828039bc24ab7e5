// Ages and deadlines tick from one server time, so a wrong clock here does not matter.
import { each } from "./dom.js";

const ahead = Date.now() - Date.parse(document.body.dataset.now || new Date().toISOString());

export const serverNow = () => Date.now() - ahead;

function span(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** A length in two units, for elapsed times and bars: 4 s, 2 min 05 s, 3 h 20 min. */
export function length(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (number) => String(number).padStart(2, "0");
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}

function words(time, now) {
  const at = Date.parse(time.dateTime);
  if (time.dataset.time === "left") return at >= now ? `${span(at - now)} left` : `${span(now - at)} over`;
  if (time.dataset.time === "in") return at > now ? `in ${span(at - now + 999)}` : "now";
  if (time.dataset.time === "span") return span(Math.max(0, now - at));
  const ago = time.dataset.time === "ago";
  if (now - at < 10000) return ago ? "just now" : "now";
  return ago ? `${span(now - at)} ago` : span(now - at);
}

const exact = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const date = new Intl.DateTimeFormat([], { dateStyle: "medium" });
const day = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });

// A time is written in the reader's zone once; a live part that is merged in puts the server's words
// back into the same element, and then again.
const SHOWN = { clock, date, day };
const written = new WeakMap();

function write(time) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) return;
  time.title = exact.format(at);
  const shown = SHOWN[time.dataset.time];
  if (shown) time.textContent = shown.format(at);
  written.set(time, time.title);
}

each("time[data-time]", write);
document.addEventListener("htmx:after:swap", () => {
  for (const time of document.querySelectorAll("time[data-time]:not(.event time)")) {
    if (written.has(time) && written.get(time) !== time.title) write(time);
  }
});

function tick() {
  const now = serverNow();
  for (const time of document.querySelectorAll("time:is([data-time=age], [data-time=ago], [data-time=span], [data-time=left], [data-time=in])")) {
    const text = words(time, now);
    if (time.textContent !== text) time.textContent = text;
  }
  const facts = document.querySelector("#run-status[data-started]:not([data-ended])");
  const elapsed = facts?.querySelector("[data-elapsed]");
  if (elapsed) elapsed.textContent = length(now - Date.parse(facts.dataset.started));
}

tick();
setInterval(tick, 1000);
