from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from runs import publishing, registry
from tests.browser.asking import Bot
from tests.browser.product import Product
from tests.factories import user as make_user
from tests.needs import need

# Playwright's own loop stands in the thread of the tests, which is no reason to keep it from the
# database.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
SIZES = {"desk": (1440, 900), "phone": (390, 844)}
PATIENCE_MS = 20_000
# What a browser writes by itself about answers and sockets that a test provokes.
EXPECTED = (
    "Failed to load resource", "WebSocket connection", "net::ERR_", "htmx:ws:error",
    "htmx:error: Failed to fetch",
)  # fmt: skip

expect.set_options(timeout=PATIENCE_MS)

Visit = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.database)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = need("chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def server(
    browser: Browser,
    django_db_setup: None,
    django_db_blocker: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Product]:
    """One server for all tests of this process, on the database they use themselves."""
    made = Product(tmp_path_factory.mktemp("home"))
    with django_db_blocker.unblock():
        made.start()
    yield made
    made.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """A failing test shows what the server wrote meanwhile."""
    report = yield
    server = getattr(item, "funcargs", {}).get("server")
    if report.failed and isinstance(server, Product):
        report.sections.append(("the server", server.log()[-4000:]))
    return report


@pytest.fixture
def product(transactional_db: None, server: Product) -> Product:
    """The server with the shipped workflow in its catalogue, whatever was flushed before."""
    registry.load()
    registry.enlist(publishing.offered()["release"])
    return server


@pytest.fixture
def bot(product: Product) -> Bot:
    return Bot(product)


@pytest.fixture
def visit(product: Product, browser: Browser) -> Iterator[Visit]:
    """A browser of its own for a person: `visit("ada")`. An error in its console fails the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_for(
        who: str | User | None, *, size: str = "desk", theme: str = "light", **options: Any
    ) -> Page:
        width, height = SIZES[size]
        context = browser.new_context(
            base_url=product.url,
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
            **options,
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        if who is not None:
            sign_in(context, product, make_user(who) if isinstance(who, str) else who)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: _note(complaints, line.type, line.text))
        return page

    yield open_for
    for context in contexts:
        with suppress(Exception):
            context.close()
    assert complaints == []


def _note(complaints: list[str], kind: str, text: str) -> None:
    if kind in ("error", "warning") and not any(part in text for part in EXPECTED):
        complaints.append(f"{kind}: {text}")


def sign_in(context: BrowserContext, product: Product, person: User) -> None:
    """Give the browser the cookie of a session, as signing in does."""
    client = Client()
    client.force_login(person)
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": value, "url": product.url}]
    )
