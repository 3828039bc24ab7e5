// Light, dark, or as the system says; kept in the browser.
import { each, on, store } from "./dom.js";

const chosen = () => document.documentElement.dataset.theme ?? "system";

function choose(theme) {
  if (theme === "system") {
    delete document.documentElement.dataset.theme;
    store.remove("theme");
  } else {
    document.documentElement.dataset.theme = theme;
    store.set("theme", theme);
  }
  show();
}

function show() {
  for (const input of document.querySelectorAll("input[name=theme], input[name=theme-page]")) {
    input.checked = input.value === chosen();
  }
}

each("[data-theme-choice], [data-theme-part]", (part) => {
  part.hidden = false;
  show();
});
on("change", "input[name=theme], input[name=theme-page]", (event, input) => choose(input.value));
