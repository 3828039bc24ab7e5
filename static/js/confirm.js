// The second step of what cannot be taken back: it names the object and the fingerprint.
import { each } from "./dom.js";

each("[data-confirm]", (button) => {
  const form = button.form;
  const step = form?.querySelector("[data-confirm-step]");
  if (!step) return;
  const bar = button.closest(".decision-bar") ?? button;
  const words = step.querySelector(".confirm-words");
  const yes = step.querySelector("[data-confirm-yes]");
  const no = step.querySelector("[data-confirm-no]");
  let sure = false;

  button.addEventListener("click", (event) => {
    if (sure || !form.noValidate && !form.reportValidity()) return;
    event.preventDefault();
    words.textContent = `${button.dataset.confirm}? ${button.dataset.confirmWords ?? "This cannot be taken back."} `;
    if (step.dataset.fingerprint) {
      const print = document.createElement("code");
      print.textContent = step.dataset.fingerprint;
      words.append("Fingerprint ", print);
    }
    yes.textContent = `Yes, ${lowerFirst(button.dataset.confirm)}`;
    yes.onclick = () => {
      sure = true;
      close();
      form.requestSubmit(button);
      sure = false;
    };
    no.onclick = () => {
      close();
      button.focus();
    };
    step.hidden = false;
    if (bar !== button) bar.hidden = true;
    no.focus();
  });

  step.addEventListener("keydown", (event) => {
    if (event.key === "Escape") no.click();
  });

  function close() {
    step.hidden = true;
    bar.hidden = false;
  }
});

function lowerFirst(text) {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
