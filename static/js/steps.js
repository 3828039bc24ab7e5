// The list of steps: bars on one time axis that grows, scopes that fold, arcs for what was sent back.
import { each, element } from "./dom.js";
import { length, serverNow } from "./countdown.js";

const SVG = "http://www.w3.org/2000/svg";
const MOVING = new Set(["running", "waiting", "queued", "retry_pending"]);
const folded = new Set();

const time = (text) => (text ? Date.parse(text) : NaN);
const rows = () => [...document.querySelectorAll("#run-steps > [data-step]")];
const isGoing = () => {
  const facts = document.querySelector("#run-status");
  return facts?.dataset.started && !facts.dataset.ended;
};

// The bar of a row, and what was last drawn of it: a row that is as it was costs no layout.
const drawn = new WeakMap();

function barOf(row) {
  let known = drawn.get(row);
  if (!known?.bar.isConnected) {
    known = { bar: row.querySelector(".step-bar"), time: row.querySelector(".step-time") };
    if (!known.bar) return null;
    drawn.set(row, known);
  }
  return known;
}

function drawBars() {
  const steps = rows();
  const over = time(document.querySelector("#run-status")?.dataset.ended);
  const now = over || serverNow();
  let first = Infinity;
  let last = -Infinity;
  const begun = [];
  for (const row of steps) {
    const start = time(row.dataset.started);
    if (!Number.isFinite(start)) continue;
    const end = time(row.dataset.ended) || now;
    begun.push([row, start, end]);
    if (start < first) first = start;
    if (end > last) last = end;
  }
  if (!begun.length) return;
  last = Math.max(first + 1000, last);
  const percent = (at) => ((at - first) / (last - first)) * 100;
  drawAxis(last - first);

  for (const [row, start, end] of begun) {
    const known = barOf(row);
    if (!known) continue;
    const rect = known.bar.querySelector("rect") ?? known.bar.appendChild(made("rect", { class: "step-rect", y: 1, height: 8, rx: 2 }));
    put(rect, "x", `${Math.min(percent(start), 99.6).toFixed(2)}%`);
    put(rect, "width", `${Math.max(percent(end) - percent(start), 0.4).toFixed(2)}%`);
    if (!row.dataset.ended && MOVING.has(row.dataset.status)) {
      const text = length(now - start);
      if (known.time.textContent !== text) known.time.textContent = text;
    }
  }
}

function put(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

function drawAxis(total) {
  const svg = document.querySelector("[data-axis] svg");
  if (!svg) return;
  const parts = [0, 0.5, 1];
  const texts = parts.map((part) => (part ? tick(total * part, total) : "0"));
  if (svg.dataset.texts === texts.join()) return;
  svg.dataset.texts = texts.join();
  svg.replaceChildren(
    ...parts.map((part, at) => {
      const label = made("text", { x: `${part * 100}%`, y: 11, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" });
      label.textContent = texts[at];
      return label;
    }),
  );
}

function tick(ms, whole) {
  return whole < 20000 ? `${(ms / 1000).toFixed(1)} s` : length(ms);
}

function made(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function parentOf(row) {
  const depth = Number(row.dataset.depth);
  let before = row.previousElementSibling;
  while (before && !(before.dataset.step && Number(before.dataset.depth) < depth)) before = before.previousElementSibling;
  return before;
}

/** Hide what is below a folded scope; one walk down the list, however long it is. */
function fold() {
  let below = Infinity;
  for (const row of rows()) {
    const depth = Number(row.dataset.depth);
    if (depth <= below) below = Infinity;
    const hide = depth > below;
    if (row.hidden !== hide) row.hidden = hide;
    const isFolded = folded.has(row.dataset.step);
    if (!hide && isFolded) below = depth;
    if (row.firstElementChild.matches(".step-fold")) put(row.firstElementChild, "aria-expanded", String(!isFolded));
  }
  drawArcs();
}

function giveFolds() {
  for (const row of rows()) {
    const next = row.nextElementSibling;
    if (!next?.dataset.step || Number(next.dataset.depth) <= Number(row.dataset.depth) || row.firstElementChild.matches(".step-fold")) continue;
    const button = element("button", { type: "button", class: "step-fold", "aria-expanded": "true", "aria-label": `Steps inside ${row.querySelector(".step-label").textContent}` });
    button.addEventListener("click", () => {
      const scope = row.dataset.step;
      if (!folded.delete(scope)) folded.add(scope);
      fold();
    });
    row.prepend(button);
  }
}

function drawArcs() {
  const list = document.querySelector("#run-steps");
  if (!list) return;
  list.querySelector(":scope > .arcs")?.remove();
  const backs = rows().filter((row) => row.dataset.sentBackTo && !row.hidden);
  if (!backs.length) return;
  const top = list.getBoundingClientRect().top;
  const middle = (row) => {
    const box = row.querySelector("summary").getBoundingClientRect();
    return box.top + box.height / 2 - top;
  };
  const holder = element("li", { class: "arcs", role: "presentation", "aria-hidden": "true" });
  const svg = made("svg", { width: "100%", height: "100%" });
  const right = Math.min(26, list.querySelector("[data-step]").getBoundingClientRect().left - list.getBoundingClientRect().left - 2);
  for (const row of backs) {
    const target = document.getElementById(`step-${row.dataset.sentBackTo}`);
    if (!target || target.hidden) continue;
    const from = middle(row);
    const to = middle(target);
    const reach = Math.max(2, right - 8 - Math.min(14, Math.abs(from - to) / 12));
    svg.append(
      made("path", { d: `M${right} ${from} C${reach} ${from} ${reach} ${to} ${right - 2} ${to}`, fill: "none", stroke: "currentColor", "stroke-width": 1.5 }),
      made("path", { d: `M${right - 5} ${to - 4} L${right} ${to} L${right - 5} ${to + 4}`, fill: "none", stroke: "currentColor", "stroke-width": 1.5 }),
    );
  }
  holder.append(svg);
  list.append(holder);
}

function draw() {
  giveFolds();
  drawBars();
  fold();
}

each("[data-steps]", (list) => {
  draw();
  list.addEventListener("toggle", drawArcs, true);
});
// A frame brings several parts, each a swap of its own: they are drawn together.
let planned = 0;
document.addEventListener("htmx:after:swap", () => {
  planned ||= requestAnimationFrame(() => {
    planned = 0;
    if (document.querySelector("[data-steps]")) draw();
  });
});
window.addEventListener("resize", drawArcs);
setInterval(() => {
  if (isGoing()) drawBars();
}, 1000);

/** Open a step in the list and bring it into view. */
export function showStep(id) {
  const row = document.getElementById(`step-${id}`);
  if (!row) return;
  for (let at = parentOf(row); at; at = parentOf(at)) folded.delete(at.dataset.step);
  fold();
  row.querySelector("details").open = true;
  row.scrollIntoView({ block: "center" });
  row.querySelector("summary").focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#step-"]');
  if (!link) return;
  event.preventDefault();
  showStep(link.hash.slice("#step-".length));
});
if (location.hash.startsWith("#step-")) showStep(location.hash.slice("#step-".length));
