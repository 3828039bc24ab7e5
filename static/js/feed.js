// The record beside the run: stays at the bottom until somebody scrolls up to read.
import { each } from "./dom.js";

const NEAR = 24;

each("[data-feed]", (feed) => {
  const scroll = feed.querySelector("[data-feed-scroll]");
  const list = feed.querySelector("[data-events]");
  const stick = feed.querySelector("[data-stick]");
  const box = stick.querySelector("input");
  stick.hidden = false;

  const left = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight;
  const toBottom = () => {
    if (box.checked) scroll.scrollTop = scroll.scrollHeight;
  };
  let before = 0;
  scroll.addEventListener("scroll", () => {
    if (left() < NEAR) box.checked = true;
    else if (scroll.scrollTop < before) box.checked = false;
    before = scroll.scrollTop;
  });
  box.addEventListener("change", toBottom);
  feed.addEventListener("change", (event) => {
    if (event.target.name === "feed-kind") requestAnimationFrame(toBottom);
  });
  if (location.hash.startsWith("#event-")) box.checked = false;
  // Rows off screen have a guessed height: the list grows while it is read, not only when events come.
  new ResizeObserver(toBottom).observe(list);
});
