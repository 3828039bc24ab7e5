"""What is known against the packages that are pinned: run as `python -m tests.audit [REPORT]`.

Fails for a known weakness, a yanked release, versions that do not go together and a vendored file
that is not the published one. Where no database of weaknesses answers, it says so in one line, and
fails only with OBVERSA_TEST_AUDIT=required. REPORT is what `pip install --report` wrote.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
VENDORED: Final = ROOT / "static" / "vendor"
_SECONDS: Final = 300


@dataclass
class Audit:
    """What was looked at, what could not be, and what is wrong."""

    looked: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def told(self) -> str:
        lines = [f"ok       {line}" for line in self.looked]
        lines += [f"UNKNOWN  {line}" for line in self.unknown]
        return "\n".join([*lines, *(f"WRONG    {line}" for line in self.wrong)])

    def code(self, *, is_required: bool) -> int:
        return 1 if self.wrong or (is_required and self.unknown) else 0


def weaknesses_of_python(audit: Audit, answer: Mapping[str, Any]) -> None:
    """Read pip-audit's JSON: a package that its database does not know was not audited."""
    packages = answer.get("dependencies", [])
    asked = [one for one in packages if "skip_reason" not in one]
    for one in asked:
        audit.wrong += [
            f"{one['name']} {one['version']}: {flaw['id']}, mended in "
            f"{', '.join(flaw.get('fix_versions', [])) or 'no release'}"
            for flaw in one.get("vulns", [])
        ]
    if asked:
        audit.looked.append(f"weaknesses of {len(asked)} Python packages looked up")
    if len(asked) < len(packages) or not packages:
        audit.unknown.append(
            f"weaknesses of {len(packages) - len(asked)} of {len(packages)} Python packages: "
            "no database of them answers here"
        )


def weaknesses_of_javascript(audit: Audit, answer: Mapping[str, Any], count: int) -> None:
    """Read `npm audit --json`; without its counts the registry answers no such question."""
    counts = answer.get("metadata", {}).get("vulnerabilities")
    if counts is None:
        audit.unknown.append(
            f"weaknesses of {count} vendored JavaScript packages: the registry answers none here"
        )
        return
    audit.looked.append(f"weaknesses of {count} vendored JavaScript packages looked up")
    audit.wrong += [
        f"{name}: {one.get('severity')}" for name, one in answer["vulnerabilities"].items()
    ]


def yanked(audit: Audit, report: Mapping[str, Any]) -> None:
    """Read pip's report of what it installed: a yanked release was taken back by its makers."""
    installed = [one for one in report.get("install", []) if not one.get("is_direct")]
    told = [one for one in installed if "is_yanked" in one]
    for one in told:
        if one["is_yanked"]:
            about = one["metadata"]
            audit.wrong.append(f"{about['name']} {about['version']} was yanked")
    if told:
        audit.looked.append(f"{len(told)} installed releases asked whether they were yanked")
    if not told or len(told) < len(installed):
        audit.unknown.append(
            f"which of {len(installed)} installed releases were yanked: an old pip does not tell, "
            "and a new one only of what it installs anew"
        )


def vendored(audit: Audit, folder: Path = VENDORED) -> dict[str, str]:
    """Compare the vendored files with their list; return the packages they come from."""
    text = (folder / "VERSIONS.txt").read_text(encoding="utf-8")
    listed = re.findall(r"^([0-9a-f]{64})\s+(\S+)\s+\S+$", text, re.MULTILINE)
    for digest, name in listed:
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            audit.wrong.append(f"static/vendor/{name} is not the file that VERSIONS.txt names")
    there = {path.name for path in folder.iterdir() if path.is_file()} - {"VERSIONS.txt"}
    audit.wrong += [
        f"static/vendor/{name} is not in VERSIONS.txt"
        for name in sorted(there - {name for _, name in listed})
    ]
    audit.looked.append(f"{len(listed)} vendored files compared with VERSIONS.txt")
    return dict(re.findall(r"^(\S+) (\d\S+)\s+\S+\s+licences/", text, re.MULTILINE))


def _ran(command: Sequence[str], where: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=where, capture_output=True, text=True, check=False, timeout=_SECONDS
    )


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def ask_python(audit: Audit) -> None:
    """Ask pip whether versions go together, and pip-audit for what is known of them."""
    together = _ran([sys.executable, "-m", "pip", "check"])
    if together.returncode:
        audit.wrong += together.stdout.strip().splitlines()
    else:
        audit.looked.append("installed versions go together")
    asked = [sys.executable, "-m", "pip_audit", "--requirement", "constraints.txt"]
    options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    weaknesses_of_python(audit, _json(_ran([*asked, *options]).stdout))


def ask_javascript(audit: Audit, packages: Mapping[str, str]) -> None:
    """Ask npm for what is known of the packages that files are vendored from."""
    if shutil.which("npm") is None:
        audit.unknown.append("weaknesses of vendored JavaScript: npm is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        made = {"name": "vendored", "version": "1.0.0", "dependencies": packages}
        (place / "package.json").write_text(json.dumps(made), encoding="utf-8")
        _ran(["npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit"], place)
        answer = _json(_ran(["npm", "audit", "--json"], place).stdout)
    weaknesses_of_javascript(audit, answer, len(packages))


def main(arguments: Sequence[str]) -> int:
    """Ask everybody, print one line for each, return the exit code."""
    audit = Audit()
    if arguments:
        yanked(audit, _json(Path(arguments[0]).read_text(encoding="utf-8")))
    packages = vendored(audit)
    ask_python(audit)
    ask_javascript(audit, packages)
    sys.stdout.write(f"{audit.told()}\n")
    return audit.code(is_required=os.environ.get("OBVERSA_TEST_AUDIT") == "required")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
