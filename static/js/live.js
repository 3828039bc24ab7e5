// One dot for the whole page, news that wait to be shown, and a record without doubles or gaps.
import { each } from "./dom.js";
import { refresh } from "./refresh.js";
import { markCaughtUp, prepare, settleEvents } from "./record.js";
import { settleInbox } from "./news.js";

const POLL_MS = 5000;
const PATIENCE_MS = 12000;
// 1000 too: a server that stops in order, or a page that comes back from the browser's cache.
const COME_BACK = [1000, 1001, 1005, 1006, 1011, 1012, 1013, 1014, 4000];
const sockets = new Map();
let polling = 0;

const socketOf = (event) => (event.target instanceof Element ? event.target.closest("[data-socket]") : null);

function show() {
  const dot = document.querySelector("#live");
  for (const socket of sockets.keys()) if (!socket.isConnected) sockets.delete(socket);
  if (!dot || !sockets.size) return;
  const states = [...sockets.values()];
  const all = states.every((one) => one.open);
  const state = all ? "live" : polling ? "polling" : "reconnecting";
  if (all) stopPolling();
  dot.hidden = false;
  if (dot.dataset.live === state) return;
  dot.dataset.live = state;
  dot.querySelector(".live-word").textContent = state;
}

function lastSeq() {
  const seqs = [...document.querySelectorAll("#run-events > [data-seq]")].map((row) => Number(row.dataset.seq));
  return Math.max(0, ...seqs);
}

/** The address a socket should open next: what the page already shows is not sent again. */
function aim(socket, connection) {
  if (socket.dataset.socket !== "run") return;
  const url = new URL(connection.url);
  url.searchParams.set("after", String(Math.max(lastSeq(), Number(socket.dataset.after ?? 0))));
  connection.url = url.href;
}

function know(socket, connection) {
  const known = sockets.get(socket) ?? { open: false, lost: 0 };
  if (connection) {
    known.connection = connection;
    connection.config.reconnectCodes = COME_BACK;
  }
  sockets.set(socket, known);
  if (known.connection && !known.open) aim(socket, known.connection);
  setTimeout(() => wait(socket), PATIENCE_MS);
  setTimeout(show, 1500);
  return known;
}

// htmx may have opened its sockets before this module was read.
each("[data-socket]", (socket) => {
  // htmx looks at the page as soon as it is read; its socket extension may have come too late.
  if (!socket._htmx?.ws?.initialized) htmx.process(socket);
  const connection = socket._htmx?.ws?.connection;
  const known = know(socket, connection);
  known.open = connection?.socket?.readyState === WebSocket.OPEN;
  if (known.open) show();
});

document.addEventListener("htmx:ws:before:connection", (event) => {
  const socket = socketOf(event);
  if (socket) know(socket, event.detail.connection);
});

document.addEventListener("htmx:ws:after:connection", (event) => {
  const socket = socketOf(event);
  if (!socket) return;
  const known = know(socket);
  known.open = true;
  if (known.lost) {
    markCaughtUp(lastSeq());
    refresh();
  }
  known.lost = 0;
  show();
});

document.addEventListener("htmx:ws:close", (event) => {
  const socket = socketOf(event);
  const known = sockets.get(socket);
  if (!known) return;
  known.open = false;
  known.lost ||= Date.now();
  setTimeout(() => wait(socket), PATIENCE_MS);
  show();
});

function wait(socket) {
  const known = sockets.get(socket);
  if (!known || known.open || polling || !socket.isConnected) return;
  polling = setInterval(poll, POLL_MS);
  poll();
  show();
}

async function poll() {
  if ((await refresh()) === "signed out") stopPolling();
}

function stopPolling() {
  clearInterval(polling);
  polling = 0;
}

document.addEventListener("htmx:before:swap", (event) => {
  const { ctx, tasks } = event.detail;
  if (!ctx?.sourceElement?.matches?.("[data-socket]") && !ctx?.live) return;
  for (const task of tasks) prepare(task);
});

document.addEventListener("htmx:after:swap", (event) => {
  settleInbox();
  settleEvents();
  const known = sockets.get(socketOf(event));
  if (known?.connection) aim(socketOf(event), known.connection);
});

// Rows that somebody opened or closed themselves keep that through a swap.
document.addEventListener("click", (event) => {
  const details = event.target.closest?.("summary")?.parentElement;
  if (details?.matches("[data-keep]")) details.dataset.touched = "";
});

each("#inbox-count", () => settleInbox());
window.addEventListener("online", () => refresh());
