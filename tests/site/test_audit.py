"""The audit fails for what is known, and says what nobody could look up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import audit
from tests.audit import Audit

FLAW = {"id": "PYSEC-2026-1", "fix_versions": ["2.0"], "description": "", "aliases": []}


def python(*packages: dict[str, Any]) -> Audit:
    made = Audit()
    audit.weaknesses_of_python(made, {"dependencies": list(packages)})
    return made


def package(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "vulns": [], **more}


def test_a_known_weakness_is_a_failure_with_what_mends_it() -> None:
    found = python(package("fine"), package("weak", vulns=[FLAW]))

    assert found.wrong == ["weak 1.0: PYSEC-2026-1, mended in 2.0"]
    assert found.code(is_required=False) == 1
    assert found.unknown == []


def test_packages_that_no_database_knows_are_not_called_fine() -> None:
    unseen = {"name": "unseen", "skip_reason": "Dependency not found"}

    some, none, nothing = python(package("fine"), unseen), python(unseen), python()

    assert "1 of 2" in some.unknown[0]
    assert "1 of 1" in none.unknown[0]
    assert none.looked == []
    assert nothing.unknown
    assert (none.code(is_required=False), none.code(is_required=True)) == (0, 1)
    assert "UNKNOWN" in none.told()


@pytest.mark.parametrize("answer", [{}, {"message": "405 Method Not Allowed", "statusCode": 405}])
def test_a_registry_that_answers_no_audit_is_unknown(answer: dict[str, Any]) -> None:
    made = Audit()

    audit.weaknesses_of_javascript(made, answer, 2)

    assert made.looked == []
    assert "2 vendored" in made.unknown[0]


def test_a_weakness_of_javascript_is_a_failure() -> None:
    made = Audit()
    counts = {"metadata": {"vulnerabilities": {"high": 1}}}

    audit.weaknesses_of_javascript(
        made, {**counts, "vulnerabilities": {"htmx.org": {"severity": "high"}}}, 2
    )

    assert made.wrong == ["htmx.org: high"]


def test_a_yanked_release_is_a_failure() -> None:
    made = Audit()
    about = {"name": "gone", "version": "1.0"}

    audit.yanked(made, {"install": [{"is_yanked": True, "metadata": about}]})

    assert made.wrong == ["gone 1.0 was yanked"]


@pytest.mark.parametrize("installed", [[], [{"metadata": {"name": "x", "version": "1"}}]])
def test_a_report_that_does_not_tell_is_no_good_report(installed: list[dict[str, Any]]) -> None:
    made = Audit()

    audit.yanked(made, {"install": installed})

    assert made.looked == []
    assert made.unknown


def test_a_vendored_file_is_the_published_one(tmp_path: Path) -> None:
    for path in audit.VENDORED.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    kept, changed = Audit(), Audit()

    assert set(audit.vendored(kept, tmp_path)) == {"htmx.org", "@dagrejs/dagre"}
    (tmp_path / "htmx.min.js").write_bytes(b"alert(1)")
    (tmp_path / "more.js").write_bytes(b"")
    audit.vendored(changed, tmp_path)

    assert kept.wrong == []
    assert len(changed.wrong) == 2
