// One message at a time, bottom left; errors stay until somebody dismisses them.
import { each, element, on } from "./dom.js";

const STAY_MS = 6000;

export function toast(text, level = "info") {
  const close = element("button", { type: "button", class: "toast-close", "data-toast-close": "" }, "Dismiss");
  const note = element("div", {
    class: "toast",
    "data-toast": "",
    "data-level": level,
    role: level === "error" ? "alert" : "status",
  }, element("p", {}, text), close);
  document.querySelector("#toasts")?.append(note);
  begin(note);
}

const started = new WeakSet();

function begin(note) {
  if (started.has(note)) return;
  started.add(note);
  const close = note.querySelector("[data-toast-close]");
  if (close) close.hidden = false;
  if (note.dataset.level === "error") return;
  const leave = () => (note.matches(":hover, :focus-within") ? setTimeout(leave, 1000) : note.remove());
  setTimeout(leave, STAY_MS);
}

each("[data-toast]", begin);
on("click", "[data-toast-close]", (event, button) => button.closest("[data-toast]").remove());

document.addEventListener("htmx:error", (event) => {
  const status = event.detail.ctx?.response?.status;
  if (!status) toast("The server did not answer, so it is not known whether this was recorded. What you wrote is kept here; sent again, the same answer counts once.", "error");
});

// A whole error page does not belong inside a pane.
document.addEventListener("htmx:before:swap", (event) => {
  const { ctx } = event.detail;
  const raw = ctx?.response?.raw;
  if (raw?.redirected && new URL(raw.url).pathname === document.body.dataset.signIn) {
    event.preventDefault();
    toast("You are signed out, so this was not recorded. Sign in and repeat it; what you wrote is kept here.", "error");
    return;
  }
  const status = ctx?.response?.status ?? 200;
  const known = [409, 410, 422].includes(status);
  if (status < 400 || known) return;
  event.preventDefault();
  const words = { 403: "You may not do this, or this page was open too long. Reload it.", 404: "This is gone, or no longer yours to see.", 413: "This is too large to be sent. Shorten it, or give a link to it; it is kept here." };
  toast(words[status] ?? `The server answered ${status}. Nothing was swapped; look again before you repeat it.`, "error");
});
