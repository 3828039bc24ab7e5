// A sign-in link: its code stands behind the #, comes out of the address at once, and is posted.
import { each } from "./dom.js";

each("[data-link]", (form) => {
  const take = () => {
    const [, code] = location.hash.match(/^#([\w-]+\.[\w-]+)$/) ?? [];
    if (!code) return;
    history.replaceState(null, "", location.pathname);
    form.elements.code.value = code;
    // In place of this page, so that Back leads to none that would have to be sent again.
    htmx.process(form);
    form.requestSubmit();
  };
  // Another link opened in the same tab changes nothing but what stands behind the #.
  addEventListener("hashchange", take);
  take();
});
