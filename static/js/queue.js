// A team's queue between two looks: rows show who took them, and a bar says what is new.
import { on } from "./dom.js";

const REST_MS = 1500;
let last = 0;
let planned = 0;

document.addEventListener("htmx:after:swap", look);
on("click", "[data-queue-show]", (event) => {
  event.preventDefault();
  location.reload();
});

/** Read the queue again soon, however often the bell rings meanwhile. */
function look() {
  if (planned || !document.querySelector("#team-queue")) return;
  planned = setTimeout(read, Math.max(200, last + REST_MS - Date.now()));
}

async function read() {
  let page;
  try {
    const response = await fetch(location.href, { cache: "no-store", headers: { Accept: "text/html" } });
    if (response.ok && !response.redirected) page = new DOMParser().parseFromString(await response.text(), "text/html");
  } catch {
    // The next bell looks again.
  }
  last = Date.now();
  planned = 0;
  const list = document.querySelector("#team-queue");
  if (page && list) show(page, list);
}

function show(page, list) {
  const count = page.querySelector("#team-counts");
  if (count) document.querySelector("#team-counts")?.replaceChildren(...count.childNodes);
  for (const row of list.querySelectorAll(":scope > [data-row]")) bring(row, page.getElementById(row.id));
  // What is new on the first page; rows never move under the pointer.
  const fresh = [...page.querySelectorAll("#team-queue > [data-row]")].filter((row) => !document.getElementById(row.id));
  const bar = document.querySelector("[data-queue-bar]");
  if (!bar) return;
  bar.hidden = !fresh.length;
  bar.querySelector("a").textContent = `${fresh.length} new, show`;
}

function bring(row, fresh) {
  // Nothing that somebody is typing in or has opened is replaced.
  if (row.contains(document.activeElement) || row.querySelector("details[open]")) return;
  const picked = row.querySelector("input[name=pick]");
  if (!fresh) {
    if (row.dataset.gone === undefined) leave(row, picked);
  } else if (fresh.dataset.claim !== row.dataset.claim || fresh.dataset.urgency !== row.dataset.urgency) {
    const again = fresh.querySelector("input[name=pick]");
    if (again && picked) again.checked = picked.checked;
    const brought = document.adoptNode(fresh);
    row.replaceWith(brought);
    htmx.process(brought);
  }
}

function leave(row, picked) {
  row.dataset.gone = "";
  picked?.closest("label").remove();
  const chip = row.querySelector(".claim");
  if (chip) chip.textContent = "no longer here";
}
