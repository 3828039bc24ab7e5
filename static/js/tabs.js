// Stacked sections become tabs; the choice is kept per kind of tab set.
import { each, element } from "./dom.js";

const kept = new Map();

each("[data-tabs]", (set) => {
  const panels = [...set.children].filter((child) => child.matches("[data-tab]"));
  if (panels.length < 2) return;

  const row = element("div", { class: "tab-row", role: "tablist" });
  const tabs = panels.map((panel) => {
    const tab = element("button", { type: "button", role: "tab", id: `${panel.id}-tab`, "aria-controls": panel.id });
    tab.append(panel.dataset.tab);
    if (panel.dataset.tabCount) tab.append(" ", element("span", { class: "tab-count" }, panel.dataset.tabCount));
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    row.append(tab);
    return tab;
  });

  const show = (index) => {
    tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", String(at === index));
      tab.tabIndex = at === index ? 0 : -1;
      panels[at].hidden = at !== index;
    });
    kept.set(set.dataset.tabs, panels[index].dataset.tab);
  };

  row.addEventListener("click", (event) => {
    const index = tabs.indexOf(event.target.closest("[role=tab]"));
    if (index >= 0) show(index);
  });
  row.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = (tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length;
    show(index);
    tabs[index].focus();
  });

  set.prepend(row);
  set.dataset.tabbed = "";
  show(Math.max(0, panels.findIndex((panel) => panel.dataset.tab === kept.get(set.dataset.tabs))));
});

// Where the tabs are wider than the screen, the chosen one is in view.
each(".tabs a[aria-current]", (tab) => {
  const row = tab.closest("ul");
  if (row.scrollWidth > row.clientWidth) row.scrollLeft = tab.offsetLeft - row.offsetLeft - row.clientWidth / 2 + tab.offsetWidth / 2;
});
