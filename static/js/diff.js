// A change: comments on its lines, and the keys that walk through it. Without this the boxes below
// the files take the comments.
import { each, element, isTyping, on, store } from "./dom.js";

const MAX_COMMENT = 4000;
const states = new WeakMap();
const watched = new WeakMap();
let awaited = null;

const keyOf = ({ target, side, position }) => JSON.stringify([target, side, position]);
const formOf = (diff) => document.querySelector(`form[id="${diff.dataset.form}"][data-answer]`);
const canComment = (diff) => diff.querySelector("[data-comments]") !== null && formOf(diff) !== null;

// --- what was said -------------------------------------------------------------------------------

each("[data-diff]", (diff) => {
  const input = diff.querySelector("[data-comments]");
  states.set(diff, input ? read(input.value) || read(stored(diff)) || new Map() : new Map());
  if (input) write(diff);
  for (const file of diff.querySelectorAll(".diff-file")) fill(diff, file);
  const index = diff.querySelector("[data-diff-index]");
  if (index && matchMedia("(width < 56.25rem)").matches) index.open = false;
  watch(diff);
});

// A file that came later: its comments stand in it, and whoever waited for it goes on there.
each(".diff-file", (file) => {
  const diff = file.closest("[data-diff]");
  if (!diff || !states.has(diff)) return;
  fill(diff, file);
  watched.get(diff)?.observe(file);
  if (awaited !== null && file.dataset.file === awaited && file.querySelector(".diff-lines")) {
    awaited = null;
    reach(file.querySelector("[data-begins]") ?? file.querySelector(".diff-file-head"));
  }
});

function stored(diff) {
  try {
    return JSON.stringify(JSON.parse(store.get(`draft:${diff.dataset.keep}`)).comments);
  } catch {
    return "";
  }
}

function read(text) {
  try {
    const found = new Map();
    for (const { anchor, body } of JSON.parse(text)) found.set(keyOf(anchor), { anchor, body: String(body) });
    return found.size ? found : null;
  } catch {
    return null;
  }
}

function write(diff) {
  const comments = [...states.get(diff).values()].filter(({ body }) => body.trim());
  diff.querySelector("[data-comments]").value = comments.length ? JSON.stringify(comments) : "";
  const key = `draft:${diff.dataset.keep}`;
  if (comments.length) store.set(key, JSON.stringify({ at: Date.now(), comments }));
  else store.remove(key);
  tell(diff, comments);
}

function tell(diff, comments) {
  const tally = diff.querySelector("[data-comment-tally]");
  if (tally) {
    tally.textContent = comments.length === 1 ? "1 comment" : `${comments.length} comments`;
    tally.hidden = comments.length === 0;
  }
  const counts = new Map();
  for (const { anchor } of comments) counts.set(anchor.target, (counts.get(anchor.target) ?? 0) + 1);
  for (const link of diff.querySelectorAll("[data-to-file]")) {
    const count = counts.get(link.dataset.path ?? pathOf(diff, link)) ?? "";
    const mark = link.querySelector("[data-file-tally]");
    if (formOf(diff)) mark.textContent = count;
  }
}

function pathOf(diff, link) {
  const file = diff.querySelector(`.diff-file[data-file="${link.dataset.toFile}"]`);
  if (file) link.dataset.path = file.dataset.path;
  return file?.dataset.path;
}

// --- comments on lines ---------------------------------------------------------------------------

function anchorOf(row, cell) {
  const file = row.closest(".diff-file");
  const numbers = [...row.querySelectorAll(".diff-number")].filter((one) => one.textContent.trim());
  const wanted = cell && numbers.includes(cell) ? cell : null;
  // Beside each other the side that was pointed at; otherwise the line as it is now, if it is.
  const chosen = row.closest("table").dataset.view === "split" && wanted ? wanted : numbers.at(-1);
  if (!chosen) return null;
  return { target: file.dataset.path, side: chosen.dataset.side, position: Number(chosen.textContent) };
}

function fill(diff, file) {
  for (const { anchor } of states.get(diff).values()) {
    if (anchor.target === file.dataset.path) draw(diff, file, anchor);
  }
}

function rowOf(file, { side, position }) {
  for (const cell of file.querySelectorAll(`.diff-number[data-side="${side}"]`)) {
    if (Number(cell.textContent) === position && cell.textContent.trim()) return cell.closest(".diff-row");
  }
  return null;
}

function draw(diff, file, anchor) {
  const key = keyOf(anchor);
  const there = [...file.querySelectorAll("[data-writes]")].find((one) => one.dataset.writes === key);
  if (there) return there.querySelector("textarea");
  const row = rowOf(file, anchor);
  if (!row || !diff.querySelector("[data-comments]")) return null;
  row.closest("details")?.setAttribute("open", "");
  const where = `${anchor.side === "old" ? "line before the change" : "line"} ${anchor.position}`;
  const area = element("textarea", { rows: "2", maxlength: String(MAX_COMMENT), "aria-label": `Comment on ${where}` });
  area.value = states.get(diff).get(key)?.body ?? "";
  const remove = element("button", { type: "button", class: "plain", "data-drop": "" }, "Remove");
  const bar = element("p", { class: "diff-bar" }, element("span", { class: "diff-who" }, `On ${where}`), remove);
  const cell = element("td", { colspan: String(row.cells.length) }, element("div", { class: "diff-comment" }, bar, area));
  const line = element("tr", { class: "diff-said", "data-writes": key }, cell);
  row.after(line);
  area.addEventListener("input", () => {
    states.get(diff).set(key, { anchor, body: area.value });
    write(diff);
  });
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" && !(event.key === "Enter" && (event.ctrlKey || event.metaKey))) return;
    event.preventDefault();
    event.stopPropagation();
    if (!area.value.trim()) drop(diff, line, key);
    row.focus();
  });
  remove.addEventListener("click", () => {
    drop(diff, line, key);
    row.focus();
  });
  return area;
}

function drop(diff, line, key) {
  states.get(diff).delete(key);
  line.remove();
  write(diff);
}

function comment(row, cell) {
  const diff = row.closest("[data-diff]");
  if (!diff || !canComment(diff)) return false;
  const anchor = anchorOf(row, cell);
  if (!anchor) return false;
  draw(diff, row.closest(".diff-file"), anchor)?.focus();
  return true;
}

on("click", ".diff-number", (event, cell) => {
  const row = cell.closest(".diff-row");
  if (row) comment(row, cell);
});

// --- walking through -----------------------------------------------------------------------------

function reach(target) {
  if (!target) return;
  target.closest("details:not([open])")?.setAttribute("open", "");
  target.focus({ preventScroll: true });
  target.scrollIntoView({ block: "center" });
}

function step(diff, selector, direction) {
  const targets = [...diff.querySelectorAll(selector)].filter((one) => one.getClientRects().length);
  const here = diff.contains(document.activeElement) ? document.activeElement : null;
  const after = (one) => !here || here.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING;
  if (direction > 0) return targets.find((one) => one !== here && after(one));
  const before = here ? targets.filter((one) => one !== here && !after(one)) : [];
  return before.at(-1);
}

function go(diff, direction, byFile) {
  // A file that has not come yet counts as a place to go to: on the way there it comes.
  const target = step(diff, byFile ? ".diff-file-head" : "[data-begins], .diff-file[hx-get] > .diff-file-head", direction);
  const file = target?.closest(".diff-file");
  if (file?.hasAttribute("hx-get")) awaited = file.dataset.file;
  reach(target);
}

document.addEventListener("keydown", (event) => {
  const diff = document.querySelector("[data-diff]");
  if (!diff || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const row = event.target instanceof Element ? event.target.closest(".diff-row") : null;
  const act = {
    n: () => go(diff, 1, false),
    p: () => go(diff, -1, false),
    N: () => go(diff, 1, true),
    P: () => go(diff, -1, true),
    c: row && canComment(diff) ? () => comment(row) : null,
    ArrowDown: row ? () => reach(step(diff, ".diff-row", 1)) : null,
    ArrowUp: row ? () => reach(step(diff, ".diff-row", -1)) : null,
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

on("click", "[data-to-file]", (event, link) => {
  const diff = link.closest("[data-diff]");
  const file = diff?.querySelector(`.diff-file[data-file="${link.dataset.toFile}"]`);
  if (!file || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (file.hasAttribute("hx-get")) awaited = file.dataset.file;
  const head = file.querySelector(".diff-file-head");
  head.focus({ preventScroll: true });
  file.scrollIntoView({ block: "start" });
});

// The list says which file is on the screen.

function watch(diff) {
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const link = diff.querySelector(`[data-to-file="${entry.target.dataset.file}"]`);
        if (entry.isIntersecting) link?.setAttribute("aria-current", "true");
        else link?.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-25% 0px -70% 0px" },
  );
  watched.set(diff, observer);
  for (const file of diff.querySelectorAll(".diff-file")) observer.observe(file);
}
