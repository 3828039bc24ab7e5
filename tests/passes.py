"""The passes of the tests, each with where its tests are: to read all files takes ten seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

SERVICES: Final = "tests/services"
# Of a marker, all the files and folders that hold tests with it.
PLACES: Final[dict[str, tuple[str, ...]]] = {
    "redis": (
        SERVICES,
        "tests/site/operations/test_broker.py",
        "tests/site/test_attack_passwords.py",
        "tests/site/test_rates.py",
    ),
    "browser": ("tests/browser",),
    "soak": (f"{SERVICES}/test_soak.py",),
}
PASSES: Final[dict[str, tuple[str, ...]]] = {
    "not browser and not redis and not soak": (),
    "redis and not soak": PLACES["redis"],
    "browser and not soak": PLACES["browser"],
    "soak": PLACES["soak"],
}


def astray(items: Iterable[pytest.Item]) -> list[str]:
    """What carries a marker somewhere its pass does not look, and would never run."""
    return [
        f"{item.nodeid} is marked {marker}, and tests/passes.py does not say that such are there"
        for item in items
        for marker, places in PLACES.items()
        if item.get_closest_marker(marker) and not _is_in(item.nodeid, places)
    ]


def _is_in(node: str, places: tuple[str, ...]) -> bool:
    return node.startswith(tuple(f"{place}{end}" for place in places for end in ("/", "::")))
