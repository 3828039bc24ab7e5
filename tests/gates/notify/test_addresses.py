from __future__ import annotations

import socket
from typing import Any

import pytest

from gates.notify import addresses, outgoing, service
from gates.notify.addresses import AddressRefused
from gates.notify.errors import NotSent


@pytest.mark.parametrize(
    "number",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "::1",
     "100.64.0.1", "fe80::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
     "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1", "255.255.255.255", "::", "nonsense",
     "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1", "ff0e::1", "5f00::1",
     "3fff::1", "4000::1", "2a00:1450::5efe:7f00:1", "2a00:1450::200:5efe:a00:1", "192.0.0.8",
     "192.88.99.1", "100:0:0:1::1", "2001:0:0:0:0:0:80ff:fffe"],
)  # fmt: skip
def test_private_addresses_are_known_in_every_guise(number: str) -> None:
    assert not addresses.is_public(number)


@pytest.mark.parametrize(
    "number",
    [
        "93.184.216.34",
        "2606:2800:220:1::1",
        "64:ff9b::5db8:d822",
        "::ffff:1.1.1.1",
        "2001:4860:4860::8888",
        "2a00:1450:4001:800::200e",
        "1.1.1.1",
        "9.9.9.9",
    ],
)
def test_public_addresses_are_public(number: str) -> None:
    assert addresses.is_public(number)


@pytest.mark.parametrize(
    "address",
    ["http://example.com/", "ftp://example.com/", "file:///etc/passwd", "https://", "https://[x/",
     "https://user:pw@example.com/", "https://example.com:99999/", "https://exa mple.com/",
     "https://example.com/\r\nX-Evil: 1", "https://ex\u00e4mple.com/", "javascript:alert(1)",
     "https://a..b/", "https://-/", "https://example.com:0/", "https://" + "a" * 3000],
)  # fmt: skip
def test_what_is_no_webhook_is_refused(address: str) -> None:
    with pytest.raises(AddressRefused):
        addresses.read_webhook(address)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1", "[::ffff:7f00:1]"]
)
def test_no_message_goes_to_this_machine(host: str) -> None:
    with pytest.raises(NotSent) as refusal:
        outgoing.post(f"https://{host}/", b"{}", {})

    assert not refusal.value.retryable or "not known" in refusal.value.text


def test_one_private_address_among_public_ones_is_enough_to_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = [(2, 1, 6, "", ("93.184.216.34", 443)), (2, 1, 6, "", ("10.0.0.1", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)

    with pytest.raises(NotSent, match="private network"):
        outgoing.post("https://rebinding.example/", b"{}", {})


def test_a_name_is_looked_up_once_and_its_number_is_connected_to(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.OBVERSA_NOTIFY_PRIVATE = True
    asked: list[str] = []

    def look_up(host: str, *_: Any, **__: Any) -> Any:
        asked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1", 1))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(NotSent, match="refused"):
        outgoing.post("http://somewhere.example:1/", b"{}", {})

    assert asked == ["somewhere.example"]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "slack://…"),
        ("https://hooks.example.com/services/secret?token=x", "https://hooks.example.com/…"),
        ("https://user:pw@example.com/x", "https://example.com/…"),
        ("https://[broken", "https:///…"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_its_secrets(address: str, shown: str) -> None:
    assert addresses.masked(address) == shown


@pytest.mark.parametrize(
    "address",
    ["json://127.0.0.1/", "jsons://example.com", "mailto://user:pw@example.com", "dbus://",
     "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
     "discord://1234567/abcdefgh?template=/etc/passwd", "discord://1234567/abcdefgh?rto=9999",
     "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#one/#two", "slack://", "nothing",
     "discord://1234567/abc\ndef", "syslog://", "file:///etc/passwd", "windows://"],
)  # fmt: skip
def test_only_services_with_hosts_of_their_own_are_taken(address: str) -> None:
    with pytest.raises(AddressRefused):
        service.read_service(address)


def test_every_service_that_is_offered_is_known_and_chooses_its_host_itself() -> None:
    service._apprise()
    from apprise.plugins import N_MGR

    for scheme in addresses.SCHEMES:
        plugin = N_MGR[scheme]
        assert not any("{host}" in template for template in plugin.templates), scheme


def test_a_service_that_the_installation_adds_still_leads_into_no_private_network(
    settings: Any,
) -> None:
    settings.OBVERSA_NOTIFY_SCHEMES = ["mmosts"]

    with pytest.raises(AddressRefused, match="private network"):
        service.read_service("mmosts://127.0.0.1/3ccdd113474722377935511fc85d3dd4")
