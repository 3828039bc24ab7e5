// The inbox between two looks: a bar for what is new, a count in the title, rows that leave quietly.
import { on } from "./dom.js";

const STAY_MS = 6000;
const FADE_MS = 150;
const leaving = new WeakSet();
let said = 0;

/** Bring bar, title and spoken count in line with what came in. */
export function settleInbox() {
  showTitle();
  const news = freshNews();
  const bar = document.querySelector("[data-news-bar]");
  if (bar) {
    bar.hidden = !news.length;
    bar.querySelector("a").textContent = `${news.length} new, show`;
  }
  const status = document.querySelector("#inbox-said");
  if (status && news.length > said) status.textContent = `${news.length} new question${news.length === 1 ? "" : "s"}`;
  said = news.length;
  for (const row of document.querySelectorAll('#inbox-list > [data-claim="answered"]')) leave(row);
}

function freshNews() {
  const seen = new Set();
  for (const item of document.querySelectorAll("#inbox-news > [data-gate]")) {
    if (!document.getElementById(`row-${item.dataset.gate}`)) seen.add(item.dataset.gate);
    else item.remove();
  }
  return [...seen];
}

function showTitle() {
  const count = Number(document.querySelector("#inbox-count")?.dataset.inboxCount ?? 0);
  const plain = document.title.replace(/^\(\d+\+?\) /, "");
  const title = count ? `(${count >= 99 ? "99+" : count}) ${plain}` : plain;
  if (document.title !== title) document.title = title;
}

function leave(row) {
  if (leaving.has(row) || row.closest("[data-history]")) return;
  leaving.add(row);
  const go = () => {
    // Nothing moves under the pointer, and the open question keeps its row.
    if (row.parentElement?.matches(":hover, :focus-within") || row.hasAttribute("data-current")) return setTimeout(go, 1000);
    row.dataset.leaving = "";
    return setTimeout(() => row.remove(), FADE_MS);
  };
  setTimeout(go, STAY_MS);
}

on("click", "[data-news-show]", async (event, link) => {
  event.preventDefault();
  await htmx.ajax("GET", link.href, { target: "#inbox-pane", select: "#inbox-pane", swap: "outerHTML" });
  document.querySelector("#inbox-news")?.replaceChildren();
  settleInbox();
  document.querySelector("#inbox-list .row-link")?.focus();
});
