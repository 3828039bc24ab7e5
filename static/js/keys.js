// The keyboard: rows, claim, verdict, search, help. Nothing here presses a verdict.
import { each, isTyping, on } from "./dom.js";

const places = { i: 0, r: 1, w: 2, t: 3 };
let going = 0;

each("[data-open-help], [data-needs-keys]", (part) => {
  part.hidden = false;
});
on("click", "[data-open-help]", () => help());

function help() {
  const dialog = document.querySelector("#keys-help");
  if (dialog && !dialog.open) dialog.showModal();
}

function move(step) {
  const links = [...document.querySelectorAll("[data-rows] .row-link")];
  if (!links.length) return;
  const focused = links.indexOf(document.activeElement);
  const current = links.findIndex((link) => link.closest("[data-current]"));
  const at = focused >= 0 ? focused : current;
  const next = at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + step));
  links[next].focus();
  links[next].closest(".row").scrollIntoView({ block: "nearest" });
}

const actions = {
  j: () => move(1),
  k: () => move(-1),
  c: () => press("c"),
  u: () => press("u"),
  y: () => reach("y"),
  n: () => reach("n"),
  "/": () => document.querySelector("[data-search]")?.focus(),
  "?": help,
};

function press(key) {
  document.querySelector(`[data-key="${key}"]`)?.click();
}

function reach(key) {
  const button = document.querySelector(`[data-key="${key}"]`);
  button?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const form = event.target.closest?.("form[data-answer]");
    if (!form) return;
    const verdicts = form.querySelectorAll("[data-verdict]");
    event.preventDefault();
    // With two verdicts there is no default: go to the buttons and let the person choose.
    if (verdicts.length) verdicts[0].focus();
    else form.querySelector("button[type=submit]")?.click();
    return;
  }
  if (event.key === "Escape" && isTyping(event.target)) {
    event.target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (Date.now() - going < 1200 && event.key in places) {
    going = 0;
    document.querySelectorAll(".rail-places a")[places[event.key]]?.click();
    return;
  }
  if (event.key === "g") {
    going = Date.now();
    return;
  }
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
