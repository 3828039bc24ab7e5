"""A page of a run in Chromium: `python -m tests.benchmarks.page_watcher`.

Takes and gives what `socket_clients` does, with the one cookie it needs; the moment is when the row
of the event is in the page.
"""

from __future__ import annotations

import json
import sys

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WATCH = """
() => {
  window.seen = {};
  const list = document.querySelector("#run-events");
  new MutationObserver((changes) => {
    for (const change of changes) for (const row of change.addedNodes) {
      if (row.dataset?.seq) window.seen[row.dataset.seq] ??= Date.now();
    }
  }).observe(list, { childList: true });
}
"""


def main() -> None:
    """Open, wait, tell."""
    from playwright.sync_api import sync_playwright

    from tests.needs import find

    given = json.loads(sys.stdin.readline())
    name, _, value = given["cookies"][0].partition("=")
    address = f"http://{given['host']}:{given['port']}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find("chromium").address, args=FLAGS)
        context = browser.new_context(base_url=address)
        context.add_cookies([{"name": name, "value": value, "url": address}])
        page = context.new_page()
        page.goto(given["path"].split("?")[0].removeprefix("/ws"))
        page.wait_for_selector("#live[data-live=live]")
        page.evaluate(WATCH)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        page.wait_for_function(f"() => window.seen[{int(sys.stdin.readline())}]", timeout=60_000)
        seen = page.evaluate("() => window.seen")
        browser.close()
    told = {seq: [moment / 1000] for seq, moment in seen.items()}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
