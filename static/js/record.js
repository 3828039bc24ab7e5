// What live fragments may do to the page: no doubled event, no form taken away, no row slammed shut.
import { element, isTyping } from "./dom.js";
import { refresh } from "./refresh.js";

const FILL_MS = 3000;
let caughtUpAfter = null;
let marker = null;
let lastStatus = document.querySelector("#run-status")?.dataset.status;

/** Look over one swap before it happens. */
export function prepare(task) {
  const { fragment, target } = task;
  if (!fragment) return;
  if (!(target instanceof Element)) {
    // A step that this page has never seen: only the page as a whole knows its place.
    if (fragment.querySelector("[data-step]")) fillGap();
    return;
  }
  if (holdsWriting(target)) {
    task.swapSpec = { style: "none" };
    return;
  }
  // What is put in place of the old rows holds them again; only what is added may double them.
  if (task.swapSpec?.style === "beforeend") {
    for (const row of fragment.querySelectorAll("[data-seq][id]")) {
      if (document.getElementById(row.id)) row.remove();
    }
  }
  for (const details of fragment.querySelectorAll("details[data-keep][id]")) {
    const shown = document.getElementById(details.id);
    if (!shown || !("touched" in shown.dataset)) continue;
    details.open = shown.open;
    details.dataset.touched = "";
  }
  for (const row of fragment.querySelectorAll("[data-row][id]")) {
    if (!document.getElementById(row.id)?.hasAttribute("data-current")) continue;
    row.setAttribute("data-current", "");
    row.querySelector(".row-link")?.setAttribute("aria-current", "true");
  }
}

function holdsWriting(target) {
  if (isTyping(document.activeElement) && target.contains(document.activeElement)) return true;
  if (target.querySelector("[data-confirm-step]:not([hidden])")) return true;
  return [...target.querySelectorAll("form[data-answer] :is(textarea, input:not([type=hidden]))")].some((input) =>
    ["radio", "checkbox"].includes(input.type) ? input.checked !== input.defaultChecked : input.value !== input.defaultValue,
  );
}

/** After a lost connection: say how many events came in meanwhile. */
export function markCaughtUp(seq) {
  caughtUpAfter = seq;
  setTimeout(() => {
    caughtUpAfter = null;
    marker = null;
  }, 4000);
}

/** Keep the record in order, name what was caught up, and fetch what is missing. */
export function settleEvents() {
  const list = document.querySelector("#run-events");
  if (!list) return;
  const status = document.querySelector("#run-status")?.dataset.status;
  if (status !== lastStatus) {
    // Which buttons a person has follows from the state; they come with the page, not the socket.
    lastStatus = status;
    refresh();
  }
  const rows = [...list.querySelectorAll(":scope > [data-seq]")];
  const seq = (row) => Number(row.dataset.seq);
  if (rows.some((row, at) => at && seq(row) < seq(rows[at - 1]))) {
    rows.sort((one, two) => seq(one) - seq(two));
    list.append(...rows);
  }
  if (rows.some((row, at) => at && seq(row) > seq(rows[at - 1]) + 1)) fillGap();
  if (caughtUpAfter === null) return;
  const caught = rows.filter((row) => seq(row) > caughtUpAfter);
  if (!caught.length) return;
  marker ??= element("li", { class: "event-gap" });
  const text = `caught up ${caught.length} event${caught.length === 1 ? "" : "s"}`;
  if (marker.textContent !== text) marker.textContent = text;
  if (marker.nextElementSibling !== caught[0]) caught[0].before(marker);
}

let filling = 0;
let later = 0;

/** Read the page again, at once or when three seconds have gone by since the last time. */
function fillGap() {
  if (later) return;
  const wait = filling + FILL_MS - Date.now();
  if (wait > 0) later = setTimeout(fill, wait);
  else fill();
}

function fill() {
  later = 0;
  filling = Date.now();
  refresh();
}
