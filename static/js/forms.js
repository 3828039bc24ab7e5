// Forms: pressed once, a note where a no needs one, JSON checked while it is written.
import { each, on } from "./dom.js";

const WAIT_MS = 15000;

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-once]")) return;
  if (form.getAttribute("aria-busy") === "true") {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  const refusal = noteMissing(form, event.submitter) ?? tickMissing(form, event.submitter);
  if (refusal) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  form.setAttribute("aria-busy", "true");
  setTimeout(() => free(form), WAIT_MS);
}, true);

function free(form) {
  form.removeAttribute("aria-busy");
}

document.addEventListener("htmx:finally:request", (event) => {
  const form = event.detail.ctx?.sourceElement;
  if (form instanceof HTMLFormElement) free(form);
});
window.addEventListener("pageshow", () => document.querySelectorAll("form[aria-busy]").forEach(free));

function noteMissing(form, submitter) {
  if (!("noteOnNo" in form.dataset) || submitter?.dataset.verdict !== "no") return null;
  const note = noteOf(form);
  if (!note || note.value.trim()) return null;
  complain(note, "Say why, so that the step knows what to change.");
  return note;
}

function noteOf(form) {
  return form.querySelector(".decision-note textarea");
}

function tickMissing(form, submitter) {
  const tick = form.querySelector("[data-needed-for-yes]");
  if (!tick || tick.checked || submitter?.dataset.verdict === "no") return null;
  complain(tick, "Tick this first.");
  return tick;
}

function complain(input, text) {
  input.setCustomValidity(text);
  input.reportValidity();
  input.addEventListener("input", () => input.setCustomValidity(""), { once: true });
}

// The second click of a double click on "Claim" must not land on the verdict that took its place.
const SETTLE_MS = 600;
let loaded = false;
window.addEventListener("load", () => {
  loaded = true;
});
each("[data-verdict], [data-answer] [type=submit]", (button) => {
  if (!loaded || button.disabled) return;
  button.disabled = true;
  setTimeout(() => {
    button.disabled = false;
  }, SETTLE_MS);
});

// Whoever writes something else has chosen it; a draft that comes back has its own choice.
each("[data-other]", (text) => {
  text.addEventListener("input", (event) => {
    const choice = text.closest(".choices").querySelector('[value="other"]');
    if (event.isTrusted && text.value.trim()) choice.checked = true;
  });
});

each("textarea", (area) => {
  if (CSS.supports("field-sizing", "content")) return;
  const fit = () => {
    area.style.blockSize = "auto";
    area.style.blockSize = `${area.scrollHeight + 2}px`;
  };
  area.addEventListener("input", fit);
  fit();
});

each("[data-reasons]", (reasons) => {
  reasons.hidden = false;
});
on("click", "[data-reason]", (event, button) => {
  const note = noteOf(button.closest("form"));
  if (!note) return;
  note.value = note.value ? `${note.value}\n${button.textContent}` : button.textContent;
  note.dispatchEvent(new Event("input", { bubbles: true }));
  note.focus();
});

each("[data-kind=json]", (field) => {
  const area = field.querySelector("textarea");
  const tools = field.querySelector("[data-json-tools]");
  if (!area || !tools) return;
  const state = tools.querySelector(".json-state");
  tools.hidden = false;
  const check = () => {
    delete state.dataset.bad;
    state.textContent = "";
    if (!area.value.trim()) return undefined;
    try {
      return JSON.parse(area.value);
    } catch (error) {
      state.dataset.bad = "";
      state.textContent = `Not JSON yet: ${error.message}`;
      return undefined;
    }
  };
  area.addEventListener("input", check);
  tools.querySelector("[data-json-format]").addEventListener("click", () => {
    const value = check();
    if (value !== undefined) area.value = JSON.stringify(value, null, 2);
  });
});

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("[data-menu][open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
