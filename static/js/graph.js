// The graph of a run, drawn on demand: dagre lays it out, the rows of the list say the states.
import { each, element, store } from "./dom.js";
import { showStep } from "./steps.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 160;
const HEIGHT = 48;
const TALLEST = 460;
// So many lines between two scopes are drawn one by one.
const MOST = 16;
const TOOLS = 44;
// More nodes than this take seconds to lay out, and nobody reads them: they are drawn when asked for.
const MANY = 400;
// Where to look first, when not everything can be seen.
const URGENT = ["waiting", "paused", "running", "queued", "failed", "exhausted"];
const SHAPES = {
  waiting: "hand", paused: "pause", running: "dot", retry_pending: "again", passed: "tick",
  failed: "cross", exhausted: "cross", sent_back: "back", queued: "ring", idle: "ring",
};

function made(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** An edge to a scope is an edge to the steps it begins or ends with. */
function ends(data, id, side) {
  data.ends ??= new Map();
  const key = `${side} ${id}`;
  if (!data.ends.has(key)) data.ends.set(key, found(data, id, side));
  return data.ends.get(key);
}

function found(data, id, side) {
  const inside = data.nodes.filter((node) => scopes(data, node.group).includes(id));
  if (!inside.length) return [id];
  const within = new Set(inside.map((node) => node.id));
  for (const group of data.groups) if (scopes(data, group.parent).includes(id)) within.add(group.id);
  const reached = new Set(
    data.edges.filter((edge) => edge.kind !== "back" && within.has(edge.from) && within.has(edge.to)).map((edge) => edge[side]),
  );
  // A step is reached by itself, or with a scope around it.
  const open = inside.filter((node) => !reached.has(node.id) && !scopes(data, node.group).some((scope) => reached.has(scope)));
  if (open.length) return open.map((node) => node.id);
  return [(side === "to" ? inside[0] : inside.at(-1)).id];
}

function scopes(data, group) {
  const chain = [];
  for (let at = group; at && !chain.includes(at); at = data.groups.find((one) => one.id === at)?.parent) chain.push(at);
  return chain;
}

async function place(data) {
  const { Graph, layout } = await import("../vendor/dagre.esm.js");
  const graph = new Graph({ compound: true, multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 20, ranksep: 24, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  const used = new Set(data.nodes.flatMap((node) => scopes(data, node.group)));
  for (const group of data.groups) if (used.has(group.id)) graph.setNode(group.id, {});
  for (const node of data.nodes) graph.setNode(node.id, { width: WIDTH, height: HEIGHT });
  for (const group of data.groups) if (used.has(group.id) && used.has(group.parent)) graph.setParent(group.id, group.parent);
  for (const node of data.nodes) if (used.has(node.group)) graph.setParent(node.id, node.group);
  for (const edge of data.edges.filter((one) => one.kind !== "back")) {
    const [starts, targets] = [ends(data, edge.from, "from"), ends(data, edge.to, "to")];
    if (starts.length * targets.length <= MOST) {
      for (const from of starts) for (const to of targets) join(graph, from, to);
      continue;
    }
    // From every one to every other would be a wall of lines: they meet in a point.
    const joint = `joint ${edge.from} ${edge.to}`;
    graph.setNode(joint, { width: 1, height: 1, joint: true });
    for (const from of starts) join(graph, from, joint);
    for (const to of targets) join(graph, joint, to);
  }
  layout(graph);
  return graph;
}

function join(graph, from, to) {
  if (from !== to && graph.hasNode(from) && graph.hasNode(to)) graph.setEdge(from, to, {}, `${from} ${to}`);
}

function smooth(points) {
  let path = `M${points[0].x} ${points[0].y}`;
  for (let at = 1; at < points.length; at += 1) {
    const before = points[at - 1];
    const here = points[at];
    const half = (before.x + here.x) / 2;
    path += ` C${half} ${before.y} ${half} ${here.y} ${here.x} ${here.y}`;
  }
  return path;
}

function head(x, y, angle, kind) {
  return made("path", { class: "graph-head", "data-kind": kind, d: "M0 0 L-8 -4 L-8 4 Z", transform: `translate(${x} ${y}) rotate(${angle})` });
}

function drawEdges(graph) {
  const layer = made("g");
  for (const edge of graph.edges()) {
    const { points } = graph.edge(edge);
    const last = points.at(-1);
    const target = graph.node(edge.w);
    const source = graph.node(edge.v);
    const end = target.joint ? target.x : target.x - WIDTH / 2 - 7;
    const line = [{ x: source.joint ? source.x : source.x + WIDTH / 2, y: source.y }, ...points.slice(1, -1), { x: end, y: target.y }];
    layer.append(made("path", { class: "graph-edge", d: smooth(line) }));
    if (!target.joint) layer.append(head(last.x < target.x ? target.x - WIDTH / 2 : last.x, target.y, 0, "needs"));
  }
  return layer;
}

function drawBacks(data, graph) {
  const layer = made("g");
  let lowest = 0;
  for (const edge of data.edges.filter((one) => one.kind === "back")) {
    const from = graph.node(ends(data, edge.from, "from")[0]);
    const to = graph.node(ends(data, edge.to, "to")[0]);
    if (!from || !to) continue;
    const start = { x: from.x - 12, y: from.y + HEIGHT / 2 };
    const end = { x: to.x + 12, y: to.y + HEIGHT / 2 + 7 };
    const drop = Math.max(start.y, end.y) + 36;
    lowest = Math.max(lowest, drop);
    layer.append(
      made("path", { class: "graph-edge", "data-kind": "back", d: `M${start.x} ${start.y} C${start.x} ${drop} ${end.x} ${drop} ${end.x} ${end.y}` }),
      head(end.x, end.y - 7, -90, "back"),
    );
    if (edge.count > 1) {
      const count = made("text", { class: "graph-count", x: (start.x + end.x) / 2, y: drop - 6, "text-anchor": "middle" });
      count.textContent = `×${edge.count}`;
      layer.append(count);
    }
  }
  return { layer, lowest };
}

function drawGroups(data, graph) {
  const layer = made("g");
  const groups = data.groups.filter((group) => graph.hasNode(group.id)).sort((one, two) => scopes(data, one.id).length - scopes(data, two.id).length);
  for (const group of groups) {
    const box = graph.node(group.id);
    const label = made("text", { x: box.x - box.width / 2 + 10, y: box.y - box.height / 2 + 15 });
    label.textContent = group.label;
    layer.append(
      made("g", { class: "graph-group" },
        made("rect", { x: box.x - box.width / 2, y: box.y - box.height / 2, width: box.width, height: box.height, rx: 8 }), label),
    );
  }
  return layer;
}

/** Write a text into its place and shorten it until it fits; needs the node on the page. */
function write(node, text) {
  // Measuring has the browser lay out the page, so it is done for what is new alone.
  if (node.written === text) return;
  node.written = text;
  node.textContent = text;
  for (let room = text.length; room > 1 && node.getComputedTextLength() > WIDTH - 42; room -= 1) {
    node.textContent = `${text.slice(0, room - 1)}…`;
  }
}

function drawNodes(data, graph) {
  const layer = made("g");
  for (const node of data.nodes) {
    const at = graph.node(node.id);
    const name = made("text", { class: "graph-name", x: 34, y: 20 });
    const title = made("title");
    title.textContent = node.label;
    layer.append(
      made("g", { class: "graph-node", "data-node": node.id, transform: `translate(${at.x - WIDTH / 2} ${at.y - HEIGHT / 2})` },
        title, made("rect", { width: WIDTH, height: HEIGHT, rx: 8 }),
        made("use", { x: 10, y: 16, width: 16, height: 16 }), name, made("text", { class: "graph-fact", x: 34, y: 36 })),
    );
  }
  return layer;
}

function paint(svg, data) {
  svg.nodesById ??= new Map([...svg.querySelectorAll("[data-node]")].map((node) => [node.dataset.node, node]));
  for (const node of data.nodes) {
    const drawn = svg.nodesById.get(node.id);
    const row = document.getElementById(`step-${node.id}`);
    if (!drawn) continue;
    write(drawn.querySelector(".graph-name"), node.label);
    const status = row?.dataset.status ?? node.status;
    const facts = [row?.dataset.word ?? node.word, row?.dataset.duration ?? node.duration, row?.querySelector(".step-rounds")?.dataset.rounds ?? node.rounds];
    drawn.dataset.status = status;
    drawn.querySelector("use").setAttribute("href", `#shape-${SHAPES[status] ?? "dash"}`);
    write(drawn.querySelector(".graph-fact"), facts.filter(Boolean).join(" · "));
  }
}

function movable(view, svg, layer, size) {
  let at = { x: 0, y: 0, scale: 1 };
  const apply = () => layer.setAttribute("transform", `translate(${at.x} ${at.y}) scale(${at.scale})`);
  // What does not fit is cut around the step that matters now.
  const around = (room, whole, focus) => (whole <= room ? (room - whole) / 2 : Math.max(room - whole, Math.min(0, room / 2 - focus)));
  const fit = (least = 0.1) => {
    const width = svg.clientWidth || 1;
    const scale = Math.min(1, Math.max(least, Math.min(width / size.width, (TALLEST - TOOLS) / size.height)));
    const height = Math.min(TALLEST, Math.max(96, size.height * scale + TOOLS));
    at = {
      x: around(width, size.width * scale, size.focus.x * scale),
      y: size.height * scale <= height ? 0 : around(height, size.height * scale, size.focus.y * scale),
      scale,
    };
    view.style.setProperty("--graph-height", `${height}px`);
    apply();
  };
  const zoom = (factor, x = svg.clientWidth / 2, y = svg.clientHeight / 2) => {
    const scale = Math.min(2, Math.max(0.1, at.scale * factor));
    at = { x: x - ((x - at.x) * scale) / at.scale, y: y - ((y - at.y) * scale) / at.scale, scale };
    apply();
  };
  const pan = (x, y) => {
    at = { ...at, x: at.x + x, y: at.y + y };
    apply();
  };

  let held = null;
  view.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && !event.target.closest("button")) held = { x: event.clientX, y: event.clientY, moved: false };
  });
  view.addEventListener("pointermove", (event) => {
    if (!held) return;
    const [x, y] = [event.clientX - held.x, event.clientY - held.y];
    if (!held.moved && Math.hypot(x, y) < 4) return;
    if (!held.moved) view.setPointerCapture(event.pointerId);
    held = { x: event.clientX, y: event.clientY, moved: true };
    view.dataset.dragging = "";
    pan(x, y);
  });
  for (const type of ["pointerup", "pointercancel"]) {
    view.addEventListener(type, (event) => {
      const node = event.target.closest?.("[data-node]");
      if (type === "pointerup" && held && !held.moved && node) showStep(node.dataset.node);
      held = null;
      delete view.dataset.dragging;
    });
  }
  view.addEventListener("wheel", (event) => {
    // A plain wheel scrolls the page; with Ctrl, or a pinch, it zooms.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.12 : 1 / 1.12, event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  view.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[event.key]) pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(1.2);
    else if (event.key === "-") zoom(1 / 1.2);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  });

  const tools = element("div", { class: "graph-tools" });
  for (const [label, text, act] of [["Zoom out", "−", () => zoom(1 / 1.2)], ["Fit", "fit", () => fit()], ["Zoom in", "+", () => zoom(1.2)]]) {
    const button = element("button", { type: "button", "aria-label": label }, text);
    button.addEventListener("click", act);
    tools.append(button);
  }
  view.append(tools);
  const readable = () => fit(0.68);
  readable();
  let width = svg.clientWidth;
  new ResizeObserver(() => {
    if (svg.clientWidth === width) return;
    width = svg.clientWidth;
    readable();
  }).observe(svg);
}

async function draw(view) {
  const source = document.getElementById(view.dataset.graph);
  if (!source || view.drawnFrom === source.textContent) return;
  view.drawnFrom = source.textContent;
  const data = { groups: [], edges: [], ...JSON.parse(source.textContent) };
  if (data.nodes.length > MANY && !view.wanted) return offer(view, data.nodes.length);
  const graph = await place(data);
  const backs = drawBacks(data, graph);
  const { width, height } = graph.graph();
  const layer = made("g", {}, drawGroups(data, graph), drawEdges(graph), backs.layer, drawNodes(data, graph));
  const svg = made("svg", { "aria-hidden": "true", focusable: "false" }, layer);
  view.replaceChildren(svg);
  view.graphData = data;
  paint(svg, data);
  const drawn = [...svg.querySelectorAll("[data-node]")];
  const now = URGENT.map((status) => drawn.find((node) => node.dataset.status === status)).find(Boolean) ?? drawn[0];
  movable(view, svg, layer, { width, height: Math.max(height, backs.lowest + 8), focus: graph.node(now.dataset.node) });
}

function offer(view, count) {
  if (view.querySelector(".graph-offer")) return;
  const button = element("button", { type: "button", class: "button" }, "Draw it all the same");
  button.addEventListener("click", () => {
    view.wanted = true;
    delete view.drawnFrom;
    view.replaceChildren(element("p", { class: "graph-offer quiet", role: "status" }, "Drawing …"));
    // The words are on the screen before the browser has no time for anything else.
    requestAnimationFrame(() => setTimeout(() => draw(view)));
  });
  const words = `The list below says what a graph of ${count.toLocaleString()} steps would. Drawing it keeps this page busy for a while.`;
  view.replaceChildren(element("div", { class: "graph-offer" }, element("p", { class: "quiet" }, words), button));
}

each("[data-graph-panel]", (panel) => {
  const view = panel.querySelector("[data-graph]");
  panel.hidden = false;
  const show = () => {
    store.set("graph", panel.open ? "open" : "");
    if (panel.open) draw(view);
  };
  panel.open = store.get("graph") === "open";
  panel.addEventListener("toggle", show);
  if (panel.open) draw(view);
});

let planned = 0;
document.addEventListener("htmx:after:swap", () => {
  planned ||= requestAnimationFrame(async () => {
    planned = 0;
    for (const view of document.querySelectorAll("[data-graph-panel][open] [data-graph]")) {
      await draw(view);
      const svg = view.querySelector("svg");
      if (svg && view.graphData) paint(svg, view.graphData);
    }
  });
});
