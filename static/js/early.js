// Before the first paint: the stored theme, and the sign that scripts run.
(() => {
  const root = document.documentElement;
  root.dataset.js = "";
  try {
    const theme = localStorage.getItem("obversa:theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // Storage may be closed to us; the system's theme is right then.
  }
})();
