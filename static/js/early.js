// Before the first paint: the stored theme, the sign that scripts run, and that they are on their way:
// until then what they will show keeps its place, so that nothing moves.
(() => {
  const root = document.documentElement;
  root.dataset.js = "";
  root.dataset.soon = "";
  addEventListener("load", () => delete root.dataset.soon);
  try {
    const theme = localStorage.getItem("obversa:theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // Storage may be closed to us; the system's theme is right then.
  }
})();
