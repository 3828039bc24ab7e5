from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("obversa_site", "gates", "runs")


def sources() -> list[Path]:
    return [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]


def files_with(pattern: str) -> set[str]:
    """Name the product's files in which a pattern occurs outside comments."""
    found = re.compile(pattern)
    return {
        str(path.relative_to(ROOT))
        for path in sources()
        if any(found.search(line.partition("#")[0]) for line in path.read_text().splitlines())
    }


@pytest.mark.parametrize(("heading", "last"), [("Run it", "manage.py up"), ("Test it", "-m tests")])
def test_the_readme_has_exactly_one_command_under_each_heading(heading: str, last: str) -> None:
    section = (ROOT / "README.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]

    blocks = re.findall(r"```\w*\n(.*?)```", section, re.DOTALL)

    assert len(blocks) == 1
    assert len(blocks[0].splitlines()) == 1
    assert blocks[0].strip().endswith(last)


def test_constraints_pin_every_package_and_name_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [line for line in lines if line and not line.lstrip().startswith("#")]

    assert pinned
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.+]+", line) for line in pinned)
    assert not [line for line in lines if "://" in line or "index" in line.split("pip-compile")[0]]


def test_constraints_hold_every_package_that_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    pinned = {
        line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()
    }

    missing = [name for name in named if re.split(r"[\[<>=]", name)[0] not in pinned]

    assert missing == []


@pytest.mark.parametrize(
    "module",
    ["runs", "gates", "runs.kernel", "runs.shapes", "runs.report", "runs.engines", "runs.drivers"],
)
def test_importing_the_authors_side_loads_no_framework(module: str) -> None:
    code = (
        "import importlib, pkgutil, sys\n"
        f"found = importlib.import_module({module!r})\n"
        f"if {module!r} not in ('runs', 'gates'):\n"
        "    for part in pkgutil.walk_packages(found.__path__, found.__name__ + '.'):\n"
        "        importlib.import_module(part.name)\n"
        "print(sorted({'django', 'celery', 'channels', 'ninja'} & set(sys.modules)))\n"
    )

    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["runs", "gates"])
def test_every_name_an_author_may_import_is_there(package: str) -> None:
    face = importlib.import_module(package)

    assert set(face.__all__) == set(face._MODULE_OF)
    assert set(face.__all__) <= set(dir(face))
    assert [name for name in face.__all__ if getattr(face, name, None) is None] == []


def test_an_unknown_name_is_refused_as_python_does() -> None:
    import runs

    with pytest.raises(AttributeError, match="no attribute 'nothing_like_it'"):
        _ = runs.nothing_like_it


@pytest.mark.parametrize(
    ("what", "door"),
    [
        (r"\batomic\(", "runs/record.py"),
        (r"\bget_channel_layer\(", "runs/live.py"),
        (r"\.(delay|delay_on_commit|apply_async|send_task)\(", "runs/dispatch.py"),
    ],
)
def test_each_door_is_the_only_file_that_does_its_thing(what: str, door: str) -> None:
    assert files_with(what) <= {door}


def test_no_file_grows_past_four_hundred_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in [*sources(), *sorted((ROOT / "tests").rglob("*.py"))]
        if (lines := len(path.read_text().splitlines())) > 400 and "migrations" not in path.parts
    }

    assert long == {}
