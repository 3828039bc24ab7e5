"""The tabs of a question: what changed since it was last asked, and the files it rests on."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from gates import services
from gates.models import Request
from obversa_site.stores import store as described
from runs import approval, dag, fn_job
from runs.artifacts import store
from runs.models import Artifact
from tests import factories
from tests.browser.conftest import SIZES, sign_in
from tests.browser.product import Product

NOTES = """# Release notes

| area | change |
|---|---|
| shop | faster **checkout** |

<script>document.title = "owned"</script>
"""
PAGE = """<!doctype html><title>Report</title><style>h1 { color: rgb(0, 90, 0) }</style>
<h1>212 tests passed</h1><p>Nothing failed.</p>
<script>parent.document.title = "owned"; document.body.textContent = "owned"</script>
<img src="https://example.com/spy.png">
"""
PIXELS = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGNgaGDAgwoGRhIAALZQCg5jZ2c"
    "AAAAASUVORK5CYII="
)
FILES: dict[str, tuple[str, bytes]] = {
    "report.html": ("text/html", PAGE.encode()),
    "notes.md": ("text/markdown", NOTES.encode()),
    "timings.csv": ("text/csv", b"step,seconds,result\nbuild,41.2,passed\ntest,180.4,passed\n"),
    "result.json": ("application/json", b'{"passed": 212, "failed": 0, "flaky": ["a", "b"]}'),
    "screenshot.png": ("image/png", PIXELS),
    "build.log": ("text/plain", b"compiling\nlinking\ndone\n"),
    "release.tar.gz": ("application/gzip", b"\x1f\x8b"),
}
LOG = [f"commit {number}: work on the shop" for number in range(30)]


def asked(settings: Any, product: Product) -> Request:
    """A question asked for the second time, with a file of each kind behind it."""
    factories.user("ada", perms=["gates.view_request", "runs.view_run"])
    settings.STORAGES = {**settings.STORAGES, "artifacts": described("", "", product.home)}
    changed = [*LOG[:12], "commit 12: another checkout", *LOG[13:], "commit 30: one more"]
    first = flow({"version": "2.3.0", "channel": "beta", "log": "\n".join(LOG)}, "Ship **2.3.0**?")
    services.submit(
        first.pk,
        principal=factories.ada(),
        token=None,
        digest=first.digest,
        response={"approved": False, "note": "The checkout is slow."},
    )
    about = {"version": "2.4.0", "channel": "beta", "log": "\n".join(changed), "signed": True}
    row = flow(about, "Ship **2.4.0**?")
    type(row.run).objects.filter(pk=row.run_id).update(rerun_of=first.run_id)
    for number, (name, (media, content)) in enumerate(FILES.items()):
        digest, size = store.keep(content)
        Artifact.objects.create(
            run=row.run,
            digest=digest,
            name=name,
            media_type=media,
            size=size,
            step_path=["flow", "build"],
            seq=1_000 + number,
            created_at=timezone.now(),
        )
    return row


def flow(about: Any, question: str) -> Request:
    job = dag(
        "flow",
        {
            "build": fn_job("build", str),
            "approve": approval("approve", question, audience=factories.FOR_ADA, input=about),
        },
    )
    row = factories.pending_gate(factories.make_run(job))
    step = row.run.steps.get(name="approve")
    step.needs = ["build"]
    step.save(update_fields=["needs"])
    return row


def findings(page: Page) -> list[str]:
    # The frame is another's page: what stands in it is not ours to mend.
    found = Axe().run(page, options={"iframes": False}).response["violations"]
    wrong = ("serious", "critical", "moderate")
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:160]}" for one in found if one["impact"] in wrong
    ]


@pytest.mark.parametrize(("size", "theme"), [("desk", "light"), ("phone", "dark")])
def test_the_tabs_show_changes_and_files_and_run_nothing(
    product: Product, browser: Browser, settings: Any, size: str, theme: str
) -> None:
    row = asked(settings, product)
    width, height = SIZES[size]
    context = browser.new_context(
        base_url=product.url,
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    sign_in(context, product, factories.user("ada"))
    page = context.new_page()
    # What the browser keeps the framed page from doing it tells in the console.
    kept_from: list[str] = []
    page.on("console", lambda line: kept_from.append(line.text))

    page.goto(row.get_absolute_url())
    page.get_by_role("tab", name="Changes").click()
    changes = page.locator(f"#gate-{row.pk}-changes")
    expect(changes).to_contain_text("that you answered on")
    expect(changes).to_contain_text("its text changed")
    expect(changes.locator("del").first).to_be_visible()
    assert findings(page) == []

    page.get_by_role("tab", name="Evidence").click()
    evidence = page.locator(f"#gate-{row.pk}-evidence")
    expect(evidence.locator("li[data-shown]")).to_have_count(len(FILES))
    frame = evidence.locator("iframe").content_frame
    expect(frame.locator("h1")).to_have_text("212 tests passed")
    expect(frame.locator("h1")).to_have_css("color", "rgb(0, 90, 0)")
    picture = evidence.locator("img")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("naturalWidth", 10)
    expect(evidence.locator("table").first).to_be_visible()
    assert findings(page) == []
    assert "owned" not in page.title()
    assert "owned" not in frame.locator("body").inner_text()
    assert any("script" in text and "sandboxed" in text for text in kept_from)
    assert any("spy.png" in text and "Content Security Policy" in text for text in kept_from)
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    context.close()
