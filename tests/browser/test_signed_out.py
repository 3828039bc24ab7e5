"""Coming in, being sent away, and coming back to the same place."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, make_password
from django.contrib.sessions.models import Session
from playwright.sync_api import Browser, expect

from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.browser.product import Product
from tests.browser.test_release_walk import link_of
from tests.factories import user


@pytest.fixture
def ada_with_password() -> None:
    person = user("ada")
    # The hasher of the server; the tests' own is quicker and unknown to it.
    person.password = make_password("correct horse", hasher=PBKDF2PasswordHasher())
    person.save()


def test_a_link_from_outside_leads_through_the_sign_in_to_its_page(
    bot: Bot, visit: Visit, ada_with_password: None
) -> None:
    question = bot.ask("Ship it?")
    page = visit(None)

    page.goto(question.get_absolute_url())
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("do not fit together")
    expect(page.get_by_label("Name")).to_have_value("ada")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Sign in").click()

    expect(page).to_have_url(re.compile(f"{question.get_absolute_url()}$"))
    expect(page.locator(".question")).to_contain_text("Ship it?")


def test_a_sign_in_link_works_once(product: Product, visit: Visit) -> None:
    link = link_of(product, "ada")
    page, other = visit(None), visit(None)

    page.goto(link)
    other.goto(link)
    expect(page.get_by_role("heading", name="Sign in as")).to_be_visible()
    # The code is gone from the address as soon as it is taken out.
    assert "#" not in page.url
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    other.get_by_role("button", name="Sign in").click()

    expect(other.get_by_role("heading", name="used or is too old")).to_be_visible()
    # Nothing on the way back has to be sent again, which a browser answers with its own error.
    page.go_back()
    expect(page.get_by_role("heading", name="Sign in by a link")).to_be_visible()


def test_without_scripts_the_code_of_a_link_is_pasted(product: Product, browser: Browser) -> None:
    link = link_of(product, "ada")
    context = browser.new_context(base_url=product.url, java_script_enabled=False)
    page = context.new_page()

    page.goto(link)
    page.get_by_label("The link, or what stands behind its #").fill(link)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    context.close()


def test_a_session_that_ended_refuses_the_act_in_words_and_keeps_the_note(
    bot: Bot, visit: Visit
) -> None:
    question = bot.ask("Ship it?")
    page = visit("ada")
    page.goto(question.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    page.get_by_label("Note").fill("Not lost")
    Session.objects.all().delete()

    page.get_by_role("button", name="Approve").click()

    expect(page.locator(".toast")).to_contain_text("You are signed out")
    expect(page.get_by_label("Note")).to_have_value("Not lost")
    assert not question.responses.exists()


def test_signing_out_ends_it(visit: Visit) -> None:
    page = visit("ada")
    page.goto("/")
    page.locator("#you-menu summary").click()
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto("/runs/")
    expect(page).to_have_url(re.compile("/sign-in/"))


def test_a_page_that_is_not_there_says_so_and_leads_back(visit: Visit) -> None:
    page = visit("ada")
    page.goto("/runs/00000000-0000-4000-8000-000000000000/")

    expect(page.get_by_role("heading", name="Nothing is here for you")).to_be_visible()
    page.get_by_role("link", name="Open the inbox").click()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
