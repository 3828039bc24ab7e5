"""How long an event takes into an open page: `python -m tests.benchmarks.frame_latency`.

The event carries the time at which its turn began; the turn decides, commits and rings after it.
The page notes when the row is there. Both clocks are this machine's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

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
    """Start the product on an empty database, watch a run, and claim and release its question."""
    options = argparse.ArgumentParser()
    options.add_argument("--events", type=int, default=60)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"OBVERSA_HOME": home, "DJANGO_SETTINGS_MODULE": "obversa_site.settings"}
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright's loop stands in this thread
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        spans = sorted(measured(Path(home), given.events))
    told = f"event to browser, {len(spans)} events: median {statistics.median(spans):.0f} ms"
    print(f"{told}, 90 % within {spans[len(spans) * 9 // 10]} ms, slowest {spans[-1]} ms")  # noqa: T201


def measured(home: Path, count: int) -> list[int]:
    """The milliseconds of each event."""
    from django.contrib.auth.models import User
    from playwright.sync_api import sync_playwright

    from gates import keys
    from runs.models import Event, Run
    from tests.browser.conftest import FLAGS, sign_in
    from tests.browser.product import Product
    from tests.needs import find

    viewer = User.objects.create_superuser("viewer", password="x")
    _, key = keys.create_key("bench", ["read", "start", "claim", "answer"])
    product = Product(home)
    product.start()

    def call(path: str, body: Any) -> Any:
        request = urllib.request.Request(
            f"{product.url}/api/v1/{path}",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    try:
        question = call("requests", QUESTION)
        run = Run.objects.get(stream="bench")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=find("chromium").address, args=FLAGS
            )
            context = browser.new_context(base_url=product.url)
            sign_in(context, product, viewer)
            page = context.new_page()
            page.goto(run.get_absolute_url())
            page.wait_for_selector("#live[data-live=live]")
            page.evaluate(WATCH)
            first = run.last_seq
            for _ in range(count // 2):
                claimed = call(f"requests/{question['id']}/claim", {})
                page.wait_for_timeout(100)
                call(f"requests/{question['id']}/release", {"claimToken": claimed["claimToken"]})
                page.wait_for_timeout(100)
            seen = page.evaluate("() => window.seen")
            browser.close()
        events = Event.objects.filter(run=run, seq__gt=first)
        return [seen[str(event.seq)] - round(event.at.timestamp() * 1000) for event in events]
    finally:
        product.stop()


QUESTION = {
    "gateId": "bench",
    "gateVersion": 1,
    "decisionText": "Go on?",
    "responseSchema": {"type": "object", "properties": {"approved": {"type": "boolean"}}},
    "input": None,
    "stream": "bench",
    "audience": {"keys": ["bench"]},
}

if __name__ == "__main__":
    main()
