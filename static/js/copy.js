// Copy buttons: shown only where copying works.
import { each, on } from "./dom.js";

each("[data-copy]", (button) => {
  button.hidden = !navigator.clipboard;
});

on("click", "[data-copy]", async (event, button) => {
  event.preventDefault();
  event.stopPropagation();
  await navigator.clipboard.writeText(button.dataset.copy);
  button.dataset.copied = "";
  button.textContent = "copied";
  setTimeout(() => {
    delete button.dataset.copied;
    button.textContent = "copy";
  }, 1500);
});
