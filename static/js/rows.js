// The list beside an open question: which row is open, and where focus goes afterwards.

let opened = null;

document.addEventListener("htmx:before:request", (event) => {
  const link = event.detail.ctx?.sourceElement;
  if (!link?.matches?.(".row-link[hx-get]")) return;
  opened = link.closest("[data-row]")?.id ?? null;
});

// A narrow screen shows one pane at a time: there the link is a plain link.
document.addEventListener("htmx:config:request", (event) => {
  const link = event.detail.ctx?.sourceElement;
  if (!link?.matches?.(".row-link[hx-get]") || matchMedia("(width >= 56.25rem)").matches) return;
  event.preventDefault();
  location.href = link.href;
});

document.addEventListener("htmx:after:swap", (event) => {
  if (!opened || !event.detail.ctx?.sourceElement?.matches?.(".row-link, #gate-pane")) return;
  for (const row of document.querySelectorAll("[data-row]")) {
    const current = row.id === opened;
    row.toggleAttribute("data-current", current);
    const link = row.querySelector(".row-link");
    if (current) link?.setAttribute("aria-current", "true");
    else link?.removeAttribute("aria-current");
  }
  opened = null;
  const pane = document.querySelector("#gate-pane");
  pane?.scrollTo({ top: 0 });
});
