"""What a person asked to release, checked before anything touches it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import SplitResult, unquote, urlsplit

from runs.engines.command import parse_command
from runs.examples._roots import may_release, roots
from runs.kernel.errors import LoopError

VERSION_PATTERN: Final = r"^v?[0-9]+(?:[.+-][0-9A-Za-z]+|[a-z]+[0-9]+)*$"
VERSION_LENGTH: Final = 64
# Which of these a release may use is for the roots to say.
SCHEMES: Final = ("file", "git", "http", "https", "ssh")
_SCP: Final = re.compile(r"^(?P<host>[^/:]+):(?P<path>.*)$", re.DOTALL)
_NOT_A_REVISION: Final = re.compile(r"^[-+:^]|[\s:*?\[\\]|\.\.|@\{|[\x00-\x1f\x7f]")
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


class Refused(Exception):
    """The step cannot do what was asked; the text is the finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One release as asked for in the run's parameters."""

    repository: str
    revision: str
    version: str
    test_command: tuple[str, ...]
    test_command_text: str
    push: bool

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Self:
        """The parameters, checked; raises Refused with the name of the wrong one."""
        text = _text(params, "testCommand", "")
        return cls(
            repository=checked_repository(_text(params, "repository")),
            revision=checked_revision(_text(params, "revision", "HEAD") or "HEAD"),
            version=checked_version(_text(params, "version")),
            test_command=checked_command(text),
            test_command_text=text.strip(),
            push=params.get("push") is True,
        )

    @property
    def tag(self) -> str:
        return self.version if self.version.startswith("v") else f"v{self.version}"

    @property
    def name(self) -> str:
        """The repository's own name, safe in a file name."""
        path = self.repository.rstrip("/").removesuffix("/.git")
        last = re.split(r"[/:]", path.rstrip("/"))[-1].removesuffix(".git").removesuffix(".bundle")
        return _NOT_A_NAME.sub("-", last).strip(".-") or "repository"

    @property
    def archive_stem(self) -> str:
        return f"{self.name}-{self.version.removeprefix('v')}"


def _text(params: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = params.get(name, default)
    if not isinstance(value, str):
        raise Refused(f"The parameter {name} is missing or not text.")
    return value.strip()


def checked_version(version: str) -> str:
    """The version, when it can stand in a tag and in a file name."""
    if len(version) > VERSION_LENGTH or not re.fullmatch(VERSION_PATTERN, version):
        raise Refused(f"The version {version!r} does not read like 2.4.0 or 2.4.0-rc.1.")
    return version


def checked_revision(revision: str) -> str:
    """The revision, when git cannot take it for an option, a range or a refspec."""
    if len(revision) > 256 or _NOT_A_REVISION.search(revision):
        raise Refused(f"The revision {revision!r} is not one branch, tag or commit.")
    return revision


def checked_command(text: str) -> tuple[str, ...]:
    """The test command's arguments; none when no command was given."""
    if not text.strip():
        return ()
    try:
        return parse_command(text)
    except LoopError as error:
        raise Refused(
            f"The parameter testCommand is refused. {error.message} "
            "Put what needs a shell into a script of the repository and name the script."
        ) from error


def checked_repository(repository: str) -> str:
    """An absolute path or an address that a release may be made of; raises Refused for others."""
    checked = _read_repository(repository)
    if not may_release(_as_address(checked)):
        raise Refused(
            f"The repository {repository} is not one that releases are made of here. "
            f"Those are: {', '.join(roots())}."
        )
    return checked


def _as_address(repository: str) -> str:
    """The address that `user@host:path` is short for."""
    match = None if "://" in repository or repository.startswith("/") else _SCP.match(repository)
    return f"ssh://{match['host']}/{match['path'].lstrip('/')}" if match else repository


def _read_repository(repository: str) -> str:
    if not repository or any(ord(character) < 32 for character in repository):
        raise Refused("The parameter repository is empty or holds a control character.")
    if repository.startswith("-"):
        raise Refused(f"The repository {repository!r} begins with a dash. Give a path or a URL.")
    # `ext::sh -c ...` and other remote helpers run whatever they are told to.
    if re.match(r"^[A-Za-z0-9][A-Za-z0-9+.-]*::", repository):
        raise Refused(f"The repository {repository!r} names a remote helper. Give a path or a URL.")
    if "://" in repository:
        return _checked_url(repository)
    if local := _existing(repository):
        return local
    if match := _SCP.match(repository):
        _check_host(match["host"].rsplit("@", 1)[-1], repository)
        return repository
    raise Refused(f"There is no repository at {repository}. Give a path on the worker or a URL.")


def _existing(path: str) -> str:
    """The absolute path of what is there; empty for anything else."""
    try:
        found = Path(path).expanduser().absolute()
        return os.path.normpath(found) if found.exists() else ""
    except (OSError, RuntimeError, ValueError):
        return ""  # a name that is too long, or a home of nobody


def _checked_url(repository: str) -> str:
    try:
        url = urlsplit(repository)
        password, user = url.password, url.username
    except ValueError as error:
        raise Refused(f"The repository's address cannot be read: {error}.") from error
    if url.scheme not in SCHEMES:
        raise Refused(
            f"The transport {url.scheme!r} is not supported. Use {', '.join(SCHEMES)} or a path."
        )
    # Parameters are shown to everybody who may see the run.
    if password is not None or (user is not None and url.scheme in {"http", "https"}):
        raise Refused(
            "The repository's address holds a login. Leave it out and give the worker a "
            "credential helper or a key."
        )
    if url.scheme == "file":
        return _checked_file(url, repository)
    _check_host(url.hostname or "", repository)
    return repository


def _checked_file(url: SplitResult, repository: str) -> str:
    if url.netloc not in {"", "localhost"} or not _existing(unquote(url.path)):
        raise Refused(f"There is no repository at {repository}.")
    return repository


def _check_host(host: str, repository: str) -> None:
    if not host or host.startswith("-"):
        raise Refused(f"The repository {repository!r} names no host.")
