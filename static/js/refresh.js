// Read the page again and bring in what changed: after a lost connection, and while only polling works.
import { element } from "./dom.js";
import { toast } from "./toasts.js";

const PARTS = ["run-status", "run-actions", "run-waiting", "run-steps", "run-artifacts", "inbox-count", "graph-data", "operations"];
let reading = null;

/** Fetch this page and merge it; calls that come meanwhile share the one in flight. */
export function refresh() {
  reading ??= read().finally(() => {
    reading = null;
  });
  return reading;
}

async function read() {
  let response;
  try {
    response = await fetch(location.href, { cache: "no-store", headers: { Accept: "text/html" } });
  } catch {
    return "unreachable";
  }
  if (response.redirected && new URL(response.url).pathname !== location.pathname) {
    toast("You are signed out. Sign in again to see what is new; what you wrote is kept here.", "error");
    return "signed out";
  }
  if (!response.ok) return "refused";
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const id of PARTS) await part(page, id);
  await events(page);
  await rows(page);
  return "read";
}

function swap(target, html, style) {
  return htmx.swap({ sourceElement: document.body, target, swap: style, text: html, transition: false, live: true });
}

async function part(page, id) {
  const fresh = page.getElementById(id);
  const shown = document.getElementById(id);
  if (!fresh || !shown) return;
  if (shown.matches("script")) shown.textContent = fresh.textContent;
  else if (fresh.outerHTML !== shown.outerHTML) await swap(shown, fresh.outerHTML, "outerMorph");
}

async function events(page) {
  const list = document.querySelector("#run-events");
  if (!list) return;
  const missing = [...page.querySelectorAll("#run-events > [data-seq]")].filter((row) => !document.getElementById(row.id));
  if (missing.length) await swap(list, missing.map((row) => row.outerHTML).join(""), "beforeend");
}

async function rows(page) {
  const news = document.querySelector("#inbox-news");
  const list = document.querySelector("#inbox-list");
  if (!list || !news) return;
  // The address may name another queue than the one that is shown.
  if (page.querySelector("#inbox-list")?.dataset.tab !== list.dataset.tab) return;
  for (const row of page.querySelectorAll("#inbox-list > [data-row]")) {
    const shown = document.getElementById(row.id);
    if (!shown) {
      const gate = row.id.slice("row-".length);
      if (!document.getElementById(`news-${gate}`)) news.append(element("li", { id: `news-${gate}`, "data-gate": gate }));
    } else if (row.dataset.claim !== shown.dataset.claim) {
      await swap(shown, row.outerHTML, "outerHTML");
    }
  }
  document.dispatchEvent(new CustomEvent("htmx:after:swap", { detail: {} }));
}
