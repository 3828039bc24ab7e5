"""`manage.py up`, killed at every commit of a run in turn, and started again.

Started by test_kills.py as a process of its own. It loads the product once and forks: each child
is a whole `up` on a home of its own, and dies by SIGKILL where its fate says.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import django

TOO_LONG_SECONDS = 60.0


class Fate:
    """Counts the commits of the run and ends the process, without a word, at one of them."""

    def __init__(self, when: str = "never", number: int = 0) -> None:
        self.when = when
        self.number = number
        self.count = 0
        self.lock = threading.Lock()
        self.is_armed = False

    def install(self) -> None:
        from django.db.backends.base.base import BaseDatabaseWrapper

        wrapper: Any = BaseDatabaseWrapper
        commit = wrapper._commit

        def counted(connection: Any) -> Any:
            with self.lock:
                self.count += self.is_armed
                dies = self.is_armed and self.count == self.number
            if dies and self.when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = commit(connection)
            if dies:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        wrapper._commit = counted


@dataclass(kw_only=True)
class Ended:
    """What a run came to, looked at by the process that saw its end."""

    status: str
    commits: int
    effects: list[str]
    seqs_have_no_gap: bool
    rows_off: int
    counts: dict[str, int] = field(default_factory=dict)


def move_in(home: Path) -> None:
    """Make this process one that was started with this home."""
    from django.conf import settings

    os.environ["OBVERSA_HOME"] = str(home)
    settings.OBVERSA_HOME = home
    settings.DATABASES["default"]["NAME"] = str(home / "obversa.sqlite3")


def prepare(home: Path) -> None:
    """Leave a home with an empty database, which saves the others the time."""
    from django.core.management import call_command

    move_in(home)
    call_command("migrate", verbosity=0, interactive=False)


def live(workflow: str, home: Path, fate: Fate) -> None:
    """Be `up` on this home until the run has ended."""
    from django.core.management import call_command

    from obversa_site.management.commands import up

    move_in(home)
    fate.install()

    def drive_instead(host: str, port: int, told: object) -> None:
        ended = drive(workflow, fate)
        (home / "ended.json").write_text(json.dumps(asdict(ended)))

    # Pages are not what is killed here, and their port would be taken by the next child.
    up.serve = drive_instead  # type: ignore[attr-defined]  # it is imported there
    with Path(os.devnull).open("w") as nowhere:
        call_command("up", stdout=nowhere)


def drive(workflow: str, fate: Fate) -> Ended:
    """Start the run unless it is there, answer what it asks, and look at its end."""
    from runs import services
    from runs.models import Run

    fate.is_armed = True
    run = services.start_run(workflow, {}, actor="user:1", idempotency_key="the run")
    while not (run := Run.objects.get(pk=run.pk)).is_final:
        answer_all(run.pk)
        time.sleep(0.01)
    fate.is_armed = False
    return look_at(run.pk, fate)


def answer_all(run_id: Any) -> None:
    """Answer every open question; one that was claimed before a kill with the token it had."""
    from runs import claims
    from runs.kernel.callbacks import CallbackStatus
    from runs.models import Run
    from runs.stored import RecordCallbacks
    from runs.turns import folding

    client = RecordCallbacks(run_id, actor="user:1", surface="browser")
    last_seq = Run.objects.values_list("last_seq", flat=True).get(pk=run_id)
    for held in folding.state_at(run_id, last_seq).callbacks.requests.values():
        if not held.is_live:
            continue
        request = held.request
        if held.status is CallbackStatus.PENDING:
            token = client.claim(request.request_id, "user:1").claim_token or ""
        else:
            mark = str(held.claim_token)
            token = claims.claim_token(run_id, request.request_id, mark, "user:1")
        answer = answer_to(request)
        client.submit(request.request_id, token, "user:1", request.digest, answer)


def answer_to(request: Any) -> dict[str, Any]:
    """A yes; and of an interrupted step the truth, which somebody looked up."""
    from runs.models import Step
    from tests.services.flow import effects

    if not request.gate_id.startswith("reconcile:"):
        return {"approved": True}
    attempt = Step.objects.values_list("attempt", flat=True).get(path=request.input["path"])
    done = f"{'/'.join(request.input['path'])}/1.{attempt}" in effects()
    return {"action": "finished" if done else "run-again"}


def look_at(run_id: Any, fate: Fate) -> Ended:
    from runs.archive import rebuild
    from runs.models import Event, Run
    from tests.services.flow import effects

    events = Event.objects.filter(run_id=run_id).order_by("seq")
    seqs = list(events.values_list("seq", flat=True))
    kinds = list(events.values_list("kind", flat=True))
    names = ("run:start", "run:end", "dag:kickback", "callback-submitted", "step:refused")
    return Ended(
        status=Run.objects.get(pk=run_id).status,
        commits=fate.count,
        effects=effects(),
        seqs_have_no_gap=seqs == list(range(1, len(seqs) + 1)),
        rows_off=rebuild.rebuild(run_id),
        counts={kind: kinds.count(kind) for kind in names},
    )


def child(do: Callable[[], None]) -> int:
    """How a child that does this ended: its exit code, or minus the signal that killed it."""
    pid = os.fork()
    if pid == 0:
        threading.Thread(target=_give_up, daemon=True).start()
        try:
            do()
        except BaseException:  # noqa: BLE001  whatever it was, the child ends here
            traceback.print_exc()
            os._exit(70)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _give_up() -> None:
    time.sleep(TOO_LONG_SECONDS)
    os._exit(71)


def tell(workflow: str, empty: Path, home: Path, fate: Fate) -> dict[str, Any]:
    """Kill a run as the fate says, start again, and print what became of it."""
    shutil.copytree(empty, home)
    died = child(lambda: live(workflow, home, fate))
    again = died if fate.when == "never" else child(lambda: live(workflow, home, Fate()))
    ended = json.loads((home / "ended.json").read_text()) if again == 0 else {}
    told = {"moment": f"{fate.when} {fate.number}", "died": died, "again": again, **ended}
    print(json.dumps(told), flush=True)  # noqa: T201  the test reads it
    shutil.rmtree(home)
    return told


def main(workflow: str, base: Path, moments: list[str]) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "obversa_site.settings"
    django.setup()
    import obversa_site.management.commands.up  # noqa: F401  loaded once for all children
    from runs import registry

    registry.load()
    empty, home = base / "empty", base / "lived-in"
    empty.mkdir()
    child(lambda: prepare(empty))
    whole = tell(workflow, empty, home, Fate())
    for when in moments:
        for number in range(1, whole["commits"] + 1):
            tell(workflow, empty, home, Fate(when, number))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
