// Look at the run once a second until it is done; a form somebody types in is never replaced.

import { element, formOf } from "./form.js";

const SHOWN_EVENTS = 40;
const EVERY_MS = 1000;
const place = (id) => document.getElementById(id);
const questions = new Map();
let count = 0;

const WORDS = { pass: "passed", fail: "failed", exhausted: "failed", aborted: "cancelled", paused: "waits" };

function wordOf(node) {
  if (node.phase === "done") return WORDS[node.outcome?.status] ?? "done";
  return { declared: "not yet", running: "running", skipped: "skipped" }[node.phase] ?? node.phase;
}

function link(input) {
  if (typeof input?.url !== "string") return null;
  let url;
  try {
    url = new URL(input.url);
  } catch {
    return null;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  return element("a", { href: url.href, rel: "noopener noreferrer", target: "_blank" }, url.href);
}

function question(request) {
  count += 1;
  const id = `question-${count}`;
  const refusal = element("p", { class: "monitor-refusal", role: "alert" });
  const form = formOf(id, request.responseSchema, async (response) => {
    refusal.textContent = "";
    for (const button of form.querySelectorAll("button")) button.disabled = true;
    try {
      const reply = await fetch("answer", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ requestId: request.requestId, response }),
      });
      const told = await reply.json();
      if (!told.ok) refusal.textContent = told.reason;
    } catch {
      refusal.textContent = "The run does not answer.";
    }
    for (const button of form.querySelectorAll("button")) button.disabled = false;
    look();
  });
  const node = element(
    "article",
    { class: "monitor-question", "aria-labelledby": `${id}-text` },
    element("h3", { id: `${id}-text`, class: "monitor-text", dir: "auto" }, request.decisionText),
  );
  const to = link(request.input);
  if (to) node.append(element("p", {}, to));
  node.append(element("pre", { tabindex: "0", dir: "auto" }, JSON.stringify(request.input, null, 2)), form, refusal);
  return node;
}

function showQuestions(pending) {
  const ids = new Set(pending.map((request) => request.requestId));
  for (const [id, node] of questions) {
    if (!ids.has(id)) {
      node.remove();
      questions.delete(id);
    }
  }
  for (const request of pending) {
    if (questions.has(request.requestId)) continue;
    const node = question(request);
    questions.set(request.requestId, node);
    place("questions").append(node);
  }
  place("no-questions").hidden = pending.length > 0;
}

function showSteps(nodes, kickbacks) {
  const rows = Object.entries(nodes).map(([name, node]) => {
    const word = wordOf(node);
    const back = kickbacks.filter((one) => one.to === name).at(-1);
    const said = [node.runs > 1 ? `run ${node.runs}` : "", node.outcome?.summary ?? node.desc ?? "", back ? `sent back by ${back.from}: ${back.reason}` : ""];
    return element(
      "li",
      { class: "monitor-step", "data-word": word },
      element("span", { dir: "auto" }, name),
      element("span", { class: "monitor-word" }, word),
      element("span", { class: "quiet", dir: "auto" }, said.filter(Boolean).join(" · ")),
    );
  });
  place("steps").replaceChildren(...rows);
}

function showEvents(events) {
  const lines = events.slice(-SHOWN_EVENTS).map((event) => {
    const at = new Date(event.ts).toISOString().slice(11, 19);
    const more = event.node ?? event.label ?? event.message ?? "";
    return element("li", {}, [at, event.kind, event.path.join("/"), more].filter(Boolean).join("  "));
  });
  const list = place("events");
  const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  list.replaceChildren(...lines);
  if (atEnd) list.scrollTop = list.scrollHeight;
}

function wordOfRun({ status, outcome, pending }) {
  if (status === "running") return pending.length ? "waits for an answer" : "running";
  return outcome?.status === "paused" ? "waits for an answer" : (WORDS[outcome?.status] ?? "done");
}

function used(usage) {
  return Object.values(usage ?? {}).some((count) => count > 0);
}

let shown = "";

function show(state) {
  const outcome = state.outcome;
  const word = wordOfRun(state);
  const told = outcome?.summary && outcome.status !== "paused";
  const status = told ? `${word}: ${outcome.summary}` : word;
  if (place("status").textContent !== status) place("status").textContent = status;
  place("name").textContent = state.name ?? "Run";
  document.title = `${word} · ${state.name ?? "Run"}`;
  showQuestions(state.pending);
  place("usage").textContent = used(state.usage) ? state.usageSummary : "";
  // What has not changed is left alone, so that a selection in it stays.
  const now = JSON.stringify([state.nodes, state.kickbacks, state.events]);
  if (now === shown) return;
  shown = now;
  showSteps(state.nodes, state.kickbacks);
  showEvents(state.events);
}

let looking = false;
let timer = 0;

async function look() {
  if (looking) return;
  looking = true;
  clearTimeout(timer);
  let goesOn = true;
  try {
    const reply = await fetch("state");
    const state = await reply.json();
    show(state);
    goesOn = state.status !== "done";
  } catch {
    place("status").textContent = "The run does not answer.";
  }
  looking = false;
  if (goesOn) timer = setTimeout(look, EVERY_MS);
}

look();
