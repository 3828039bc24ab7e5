// Small helpers: begin a behaviour once per element, also on what htmx brings later.

const behaviours = [];

/** Call begin(element) once for every element that matches, now and after each swap. */
export function each(selector, begin) {
  const behaviour = { selector, begin, done: new WeakSet() };
  behaviours.push(behaviour);
  apply(behaviour, document);
}

function apply({ selector, begin, done }, root) {
  const found = [...root.querySelectorAll(selector)];
  if (root instanceof Element && root.matches(selector)) found.unshift(root);
  for (const element of found) {
    if (done.has(element)) continue;
    done.add(element);
    begin(element);
  }
}

document.addEventListener("htmx:after:process", (event) => {
  for (const behaviour of behaviours) apply(behaviour, event.target);
});

/** Listen on the document for events from elements that match. */
export function on(type, selector, handler, options) {
  document.addEventListener(
    type,
    (event) => {
      const element = event.target instanceof Element ? event.target.closest(selector) : null;
      if (element) handler(event, element);
    },
    options,
  );
}

/** Read and write localStorage where it is open to us. */
export const store = {
  get(key) {
    try {
      return localStorage.getItem(`obversa:${key}`);
    } catch {
      return null;
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(`obversa:${key}`, value);
    } catch {
      // A full or closed store costs a convenience, never an answer.
    }
  },
  remove(key) {
    try {
      localStorage.removeItem(`obversa:${key}`);
    } catch {
      // As above.
    }
  },
  keys() {
    try {
      return Object.keys(localStorage)
        .filter((key) => key.startsWith("obversa:"))
        .map((key) => key.slice("obversa:".length));
    } catch {
      return [];
    }
  },
};

export function isTyping(target) {
  return (
    target instanceof Element &&
    target.closest("input:not([type=radio], [type=checkbox], [type=button]), textarea, select, [contenteditable]") !== null
  );
}

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
