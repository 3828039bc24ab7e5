from __future__ import annotations

import hashlib
import hmac

import pytest

from gates import signing

SECRET = "a secret of some length"
BODY = '{"event":"question.requested","text":"Ä 🚀"}'.encode()
NOW = 1_775_000_000


def headers(body: bytes = BODY, at: int = NOW, secret: str = SECRET) -> dict[str, str]:
    return signing.signed_headers(secret, body, at)


def test_the_signature_is_that_of_the_documented_bytes() -> None:
    by_hand = hmac.new(SECRET.encode(), b"1775000000." + BODY, hashlib.sha256).hexdigest()

    assert headers() == {"Obversa-Timestamp": "1775000000", "Obversa-Signature": f"v1={by_hand}"}


@pytest.mark.parametrize(
    ("secret", "body", "at", "digest"),
    [
        (
            "whole-secret-0001",
            b"",
            0,
            "63f2a8bf6f88cf22be05b0bb9daf3f57815fb4b294f8ccac22e9a294ede7fe48",
        ),
        (
            "whole-secret-0001",
            b'{"id":"1"}',
            1_700_000_000,
            "8eb6538a5b2f08387e95db0b6490c711a766103ce2ebce0eacf9bcd8c261517a",
        ),
        (
            "gehe\u00edmnis-lang-genug",
            '{"t":"\u00e9"}'.encode(),
            1_700_000_001,
            "a110d51ddb3ec77ddf0cf21e927207174c2ff4e8ebae29d15c1fecb47d9334c3",
        ),
    ],
)
def test_signatures_stay_as_they_were_published(
    secret: str, body: bytes, at: int, digest: str
) -> None:
    assert signing.signature(secret, body, at) == f"v1={digest}"


def test_a_message_is_taken_at_both_ends_of_the_window_and_not_beyond() -> None:
    sent = headers()

    assert signing.verify(SECRET, BODY, sent, NOW + 300)
    assert signing.verify(SECRET, BODY, sent, NOW - 300)
    assert not signing.verify(SECRET, BODY, sent, NOW + 301)
    assert not signing.verify(SECRET, BODY, sent, NOW - 301)
    assert not signing.verify(SECRET, BODY, sent, NOW + 11, window_seconds=10)


def test_nothing_of_a_message_can_be_changed() -> None:
    sent = headers()

    assert not signing.verify(SECRET, BODY + b" ", sent, NOW)
    assert not signing.verify("another secret of length", BODY, sent, NOW)
    assert not signing.verify(SECRET, BODY, {**sent, "Obversa-Timestamp": str(NOW + 1)}, NOW)
    assert not signing.verify(SECRET, BODY, {**sent, "Obversa-Signature": "v1=" + "0" * 64}, NOW)


@pytest.mark.parametrize(
    "stamp", ["", "-1", "1e9", " 1775000000", "\u0661\u0667\u0667", "9" * 400, "1.5"]
)
def test_a_timestamp_that_is_no_whole_number_is_refused(stamp: str) -> None:
    assert not signing.verify(SECRET, BODY, {**headers(), "Obversa-Timestamp": stamp}, NOW)


def test_a_message_without_headers_or_a_receiver_without_a_secret_is_refused() -> None:
    assert not signing.verify(SECRET, BODY, {}, NOW)
    assert not signing.verify(SECRET, BODY, {"Obversa-Timestamp": str(NOW)}, NOW)
    empty = signing.signature("", BODY, NOW)
    unset = {"Obversa-Timestamp": str(NOW), "Obversa-Signature": empty}
    assert not signing.verify("", BODY, unset, NOW)


def test_one_fitting_signature_is_enough_while_a_secret_is_changed() -> None:
    old, new = headers(secret="the secret of yesterday"), headers()
    both = f"{old['Obversa-Signature']}, {new['Obversa-Signature']}"

    assert signing.verify(SECRET, BODY, {**new, "Obversa-Signature": both}, NOW)
    many = ",".join(["v1=00"] * 5 + [new["Obversa-Signature"]])
    assert not signing.verify(SECRET, BODY, {**new, "Obversa-Signature": many}, NOW)


def test_headers_are_found_however_a_server_writes_their_names() -> None:
    sent = {name.upper(): value for name, value in headers().items()}

    assert signing.verify(SECRET, BODY, sent, NOW)


def test_hostile_headers_are_refused_and_raise_nothing() -> None:
    for text in ("\udce9", "v1=é", ",,,,,,,", "v1"):
        assert not signing.verify(SECRET, BODY, {**headers(), "Obversa-Signature": text}, NOW)


def test_a_short_secret_signs_nothing() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        signing.signed_headers("short", BODY, NOW)


def test_secrets_are_long_and_never_the_same() -> None:
    made = {signing.new_secret() for _ in range(20)}

    assert len(made) == 20
    assert all(len(secret) >= 48 for secret in made)
