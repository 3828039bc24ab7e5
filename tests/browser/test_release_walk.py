"""The main job whole: a release of a real git repository, approved by a person in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from obversa_site.accounts import sign_in_link
from tests.browser.conftest import Visit
from tests.browser.product import Product
from tests.examples.repositories import commit, git
from tests.factories import user


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A bare repository, so that a tag can be pushed to it."""
    work, bare = tmp_path / "work", tmp_path / "shop.git"
    work.mkdir()
    git(work, "init", "--quiet", "--initial-branch=main")
    commit(work, "Start the shop")
    git(work, "tag", "v1.0.0")
    commit(work, "Add a basket")
    commit(work, "Fix rounding of prices")
    git(tmp_path, "clone", "--quiet", "--bare", str(work), str(bare))
    return bare


def link_of(product: Product, name: str) -> str:
    return product.url + "/" + sign_in_link(user(name)).split("/", 3)[3]


def claim(page: Page) -> None:
    page.get_by_role("button", name="Claim and answer").click()
    expect(page.get_by_text("yours to answer")).to_be_visible()


def test_a_release_from_start_to_tag(product: Product, visit: Visit, repository: Path) -> None:
    user("ada", perms=["runs.add_run"])
    ada, ben = visit(None), visit(user("ben", first_name="Ben", last_name="Okafor"))

    # Ada signs in by the link and starts the workflow.
    ada.goto(link_of(product, "ada"))
    ada.get_by_role("button", name="Sign in").click()
    expect(ada.get_by_role("heading", name="Inbox")).to_be_visible()
    ada.get_by_role("link", name="Workflows").click()
    ada.get_by_role("link", name="Start Release a git repository").click()
    ada.get_by_label("Repository").fill(str(repository))
    ada.get_by_label("Version").fill("1.1.0")
    ada.get_by_label("Test command").fill("git --version")
    ada.get_by_label("Yes").check()
    ada.get_by_role("button", name="Start a run").click()

    # The steps move without a reload, up to the question.
    status = ada.locator("#run-status")
    expect(ada).to_have_url(re.compile("/runs/[0-9a-f-]+/$"))
    ada.evaluate("window.notReloaded = true")
    expect(status).to_have_attribute("data-status", "waiting", timeout=60_000)
    for name in ("inspect", "test", "build"):
        expect(ada.locator(".step", has_text=name).first).to_have_attribute("data-status", "passed")
    expect(ada.locator("#run-events")).to_contain_text("question asked")
    assert ada.evaluate("window.notReloaded")
    run_url = ada.url

    # The subject can be read: the commits, the test, the archive.
    ada.get_by_role("link", name="Open the question").click()
    facts = ada.locator(".facts")
    expect(facts).to_contain_text("Fix rounding of prices")
    expect(facts).to_contain_text("Add a basket")
    expect(facts).to_contain_text("git version")
    with ada.expect_download() as download:
        facts.get_by_role("link", name="shop-1.1.0.tar.gz").click()
    assert download.value.suggested_filename == "shop-1.1.0.tar.gz"

    # Ben looks at the same question; Ada claims it, he sees that and is refused.
    ben.goto(ada.url)
    expect(ben.get_by_role("button", name="Claim and answer")).to_be_visible()
    claim(ada)
    expect(ben.locator(".banner")).to_contain_text("ada claimed this question")
    expect(ben.locator(".row[data-current] .claim")).to_contain_text("ada")
    ben.get_by_role("button", name="Claim and answer").click()
    expect(ben.get_by_role("alert")).to_contain_text("ada")
    expect(ben.locator(".decision")).to_have_attribute("data-mode", "held")

    # A no needs a note, and goes back to the step with it.
    ada.get_by_role("button", name="Send back to inspect").click()
    expect(ada.locator(".receipt")).to_have_count(0)
    ada.get_by_label("Note").fill("The rounding fix needs a test.")
    ada.get_by_role("button", name="Send back to inspect").click()
    expect(ada.locator(".receipt")).to_contain_text("Sent back to inspect")
    expect(ada.locator(".row[data-current] .claim")).to_contain_text("refused, ada")
    expect(ben.locator(".banner")).to_contain_text("ada answered this question")

    # The second round asks again and says what is new.
    ada.get_by_role("link", name="Watch the run").click()
    expect(status).to_have_attribute("data-status", "waiting", timeout=60_000)
    ada.get_by_role("link", name="Open the question").click()
    expect(ada.locator(".gate-state")).to_contain_text("round 2")
    expect(facts).to_contain_text("The rounding fix needs a test.")
    claim(ada)
    ada.get_by_role("button", name="Approve 1.1.0").click()
    receipt = ada.locator(".receipt")
    expect(receipt).to_contain_text("Approved")
    expect(receipt).to_contain_text("The run resumed with tag")

    # The tag is in the repository it came from, and the run says how it ended.
    ada.goto(run_url)
    expect(status).to_have_attribute("data-status", "passed", timeout=60_000)
    expect(ada.locator("#run-artifacts")).to_contain_text("release-notes.md")
    head = git(repository, "rev-parse", "main")
    assert git(repository, "rev-parse", "v1.1.0^{commit}") == head
    assert git(repository, "cat-file", "-t", "v1.1.0") == "tag"
