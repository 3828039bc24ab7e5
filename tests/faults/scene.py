"""What the processes of the fault suite tell each other, as files in the folder of one fault."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

PATIENCE_SECONDS = 240.0


def folder() -> Path:
    """The folder of the fault that is tried now; the same for every process of the suite."""
    return Path(os.environ["OBVERSA_TEST_SCENE"]) / "now"


def put(name: str, text: str = "") -> None:
    """Say something; others see all of it or nothing."""
    made = folder() / f".{name}.{os.getpid()}"
    made.write_text(text)
    made.replace(folder() / name)


def take(name: str) -> None:
    (folder() / name).unlink(missing_ok=True)


def said(name: str) -> str:
    """What was put under this name, or nothing."""
    try:
        return (folder() / name).read_text()
    except FileNotFoundError:
        return ""


def note(name: str, line: str) -> None:
    """Add a line, whoever else adds one at the same moment."""
    handle = os.open(folder() / f"{name}.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def note_once(name: str, line: str) -> None:
    """Add the line unless it is there; a process that dies here has done it or has not."""
    with (folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if line not in notes(name):
            note(name, line)


def notes(name: str) -> list[str]:
    found = folder() / f"{name}.txt"
    return found.read_text().splitlines() if found.exists() else []


def is_first(name: str) -> bool:
    """True for one caller of all processes, whenever it comes."""
    try:
        handle = os.open(folder() / f"first-{name}", os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return False
    os.close(handle)
    return True


def stay_while(name: str, mark: str) -> None:
    """Wait until the suite takes this back, if it holds what bears this mark."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (held := said(name)) and mark.startswith(held.removeprefix("*")):
        if time.monotonic() > end:
            raise TimeoutError(f"{mark} was held too long.")
        time.sleep(0.01)
