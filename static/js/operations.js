// A part of a page that is read again every few seconds, while somebody can see it.
import { each } from "./dom.js";
import { refresh } from "./refresh.js";

let timer = 0;

each("[data-refresh]", (part) => {
  clearInterval(timer);
  timer = setInterval(() => look(part.id), Number(part.dataset.refresh) * 1000);
});

async function look(id) {
  if (!document.getElementById(id)) clearInterval(timer);
  else if (!document.hidden && (await refresh()) === "signed out") clearInterval(timer);
}
