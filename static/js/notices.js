// Notifications of the browser: asked for in the settings, for this browser alone, and only of
// questions that come while nobody looks. Title and fingerprint, nothing more.
import { each, on, store } from "./dom.js";

const KEY = "notices";
const can = "Notification" in window;
const wanted = () => can && store.get(KEY) === "on" && Notification.permission === "granted";

each("[data-browser-notices]", (part) => {
  if (!can) return;
  part.hidden = false;
  show(part);
});

function show(part) {
  const on = wanted();
  part.querySelector("[data-notices-switch]").setAttribute("aria-pressed", String(on));
  part.querySelector("[data-notices-switch]").textContent = on ? "Show no more" : "Show new questions";
  const refused = Notification.permission === "denied";
  part.querySelector("[data-notices-word]").textContent = refused
    ? "This browser refuses notifications of this site; its own settings change that."
    : on ? "New questions are shown." : "";
}

on("click", "[data-notices-switch]", async (event, button) => {
  if (wanted()) store.remove(KEY);
  else if ((await Notification.requestPermission()) === "granted") store.set(KEY, "on");
  show(button.closest("[data-browser-notices]"));
});

document.addEventListener("htmx:after:swap", () => {
  for (const item of document.querySelectorAll("#inbox-news > [data-line]:not([data-told])")) {
    item.dataset.told = "";
    if (wanted() && !(document.visibilityState === "visible" && document.hasFocus())) tell(item.dataset);
  }
});

function tell({ gate, line, print }) {
  // The same tag in every tab: one notification, however many are open.
  const notice = new Notification(line, { body: print, tag: `gate-${gate}` });
  notice.addEventListener("click", () => {
    window.focus();
    window.location.assign(`/gates/${encodeURIComponent(gate)}/`);
    notice.close();
  });
}
