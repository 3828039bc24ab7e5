// What somebody is writing stays in this browser, per question and fingerprint, until it is recorded.
import { each, store } from "./dom.js";

const KEEP_MS = 30 * 24 * 3600 * 1000;
const SKIPPED = new Set(["csrfmiddlewaretoken", "claim_token", "digest"]);

function values(form) {
  const kept = [];
  for (const input of form.elements) {
    if (!input.name || SKIPPED.has(input.name) || ["hidden", "password", "file", "submit", "button"].includes(input.type)) continue;
    if (["radio", "checkbox"].includes(input.type)) {
      if (input.checked) kept.push([input.name, input.value]);
    } else if (input.multiple) {
      for (const option of input.selectedOptions) kept.push([input.name, option.value]);
    } else if (input.value) {
      kept.push([input.name, input.value]);
    }
  }
  return kept;
}

function restore(form, kept) {
  for (const input of form.elements) {
    if (!input.name || SKIPPED.has(input.name) || input.type === "hidden") continue;
    const mine = kept.filter(([name]) => name === input.name).map(([, value]) => value);
    if (["radio", "checkbox"].includes(input.type)) {
      input.checked = mine.includes(input.value);
    } else if (input.multiple) {
      for (const option of input.options) option.selected = mine.includes(option.value);
    } else if (mine.length && "value" in input && !["submit", "button"].includes(input.type)) {
      input.value = mine[0];
      input.dispatchEvent(new Event("input"));
    }
  }
}

function say(form, at) {
  const line = form.querySelector("[data-draft-said]");
  if (!line) return;
  const clock = new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  line.textContent = `Draft from ${clock}, kept in this browser. `;
  const drop = document.createElement("button");
  drop.type = "button";
  drop.className = "plain";
  drop.textContent = "Discard";
  drop.addEventListener("click", () => {
    store.remove(`draft:${form.dataset.draft}`);
    form.reset();
    line.hidden = true;
  });
  line.append(drop);
  line.hidden = false;
}

// A form that was sent and is not shown again was taken; an error page reads no modules and so
// leaves the draft for the way back.
const sent = store.get("sent");
if (sent) {
  store.remove("sent");
  if (![...document.querySelectorAll("form[data-draft]")].some((form) => form.dataset.draft === sent)) store.remove(`draft:${sent}`);
}
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("form[data-draft]:not([hx-post])")) store.set("sent", form.dataset.draft);
});

each("form[data-draft]", (form) => {
  const key = `draft:${form.dataset.draft}`;
  const before = JSON.stringify(values(form));
  const stored = read(key);
  // Values that came back from the server with errors are newer than any draft.
  if (stored && !form.querySelector("[data-invalid], .form-errors") && JSON.stringify(stored.values) !== before) {
    restore(form, stored.values);
    say(form, stored.at);
  }
  let timer = 0;
  const keepNow = () => {
    clearTimeout(timer);
    timer = 0;
    if (form.isConnected) store.set(key, JSON.stringify({ at: Date.now(), values: values(form) }));
  };
  const keep = () => {
    timer ||= setTimeout(keepNow, 300);
  };
  form.addEventListener("input", keep);
  form.addEventListener("change", keep);
  // Whoever leaves between two savings loses nothing; what htmx has sent is no draft any more.
  window.addEventListener("pagehide", () => {
    if (timer && !(form.matches("[hx-post]") && form.getAttribute("aria-busy") === "true")) keepNow();
  });
});

function read(key) {
  try {
    return JSON.parse(store.get(key));
  } catch {
    return null;
  }
}

// A receipt in place of the form says that the answer stands in the record.
document.addEventListener("htmx:after:swap", (event) => {
  const form = event.detail.ctx?.request?.form;
  const status = event.detail.ctx?.response?.status;
  if (form?.dataset?.draft && status >= 200 && status < 300) store.remove(`draft:${form.dataset.draft}`);
});
each("[data-receipt]", (receipt) => {
  const pk = receipt.closest("[data-gate]")?.id.slice("gate-".length);
  for (const key of store.keys()) if (pk && key.startsWith(`draft:${pk}:`)) store.remove(key);
});

for (const key of store.keys()) {
  if (key.startsWith("draft:") && Date.now() - (read(key)?.at ?? 0) > KEEP_MS) store.remove(key);
}
