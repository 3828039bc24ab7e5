"""`manage.py up`, killed at a named point of an approved action, and started again.

Started by test_action_kills.py as a process of its own, which forks as tests/services/crashing.py
does: each child is a whole `up` on a home of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import django

from tests.services.crashing import child, move_in, prepare


def live(workflow: str, home: Path, point: str) -> None:
    """Be `up` on this home until the run has ended, or until this process dies at the point."""
    from django.core.management import call_command

    from obversa_site.management.commands import up
    from tests.services import actions_flow

    move_in(home)
    actions_flow.FATE["point"] = point
    _die_between_turns()

    def drive_instead(host: str, port: int, told: object) -> None:
        (home / "ended.json").write_text(json.dumps(drive(workflow)))

    up.serve = drive_instead  # type: ignore[attr-defined]  # it is imported there
    with Path(os.devnull).open("w") as nowhere:
        call_command("up", stdout=nowhere)


def _die_between_turns() -> None:
    """Two of the points are between two turns of the gateway, where no code of an author is."""
    from runs.drivers import actions
    from runs.kernel import calls
    from tests.services.actions_flow import die_at

    module: Any = actions
    deciding: Any = calls
    started, end = deciding.started, module._end

    def begun(*given: Any) -> Any:
        die_at("reserved")
        return started(*given)

    def ended(*given: Any, **named: Any) -> Any:
        result = end(*given, **named)
        die_at("recorded")
        return result

    deciding.started = begun
    module._end = ended


def drive(workflow: str) -> dict[str, Any]:
    """Start the run unless it is there, answer what it asks, and look at its end."""
    from runs import services
    from runs.models import Event, Run
    from runs.turns import folding
    from tests.services import actions_flow

    run = services.start_run(workflow, {}, actor="user:1", idempotency_key="the run")
    while not (run := Run.objects.get(pk=run.pk)).is_final:
        answer_all(run.pk)
        time.sleep(0.01)
    events = list(Event.objects.filter(run=run).order_by("seq"))
    kinds = [event.kind for event in events]
    action = next(iter(folding.state_at(run.pk, run.last_seq).actions.values()))
    return {
        "status": run.status,
        "summary": [e.payload["outcome"].get("summary") for e in events if e.kind == "job:end"],
        "execution": action.execution,
        "sends": actions_flow.lines("sends"),
        "effects": actions_flow.lines("effects"),
        "key": action.key,
        "asked": [
            event.payload["request"]["gateId"].partition(":")[0]
            for event in events
            if event.kind == "callback-requested"
        ],
        "counts": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
    }


def answer_all(run_id: Any) -> None:
    from runs.stored import RecordCallbacks
    from tests.services import actions_flow

    client = RecordCallbacks(run_id, actor="user:2", surface="browser")
    for request in client.list_pending():
        token = client.claim(request.request_id, "user:2").claim_token or ""
        answer = {"decision": "allow_once"}
        if request.gate_id.startswith("doubt:"):
            # Somebody looks at the other side, under the key that the question names.
            assert isinstance(request.input, dict)
            happened = request.input["idempotencyKey"] in actions_flow.lines("effects")
            answer = {"outcome": "happened" if happened else "did-not-happen"}
        elif request.gate_id.startswith("reconcile:"):
            # The call is over, and what the step did after it may be done again.
            answer = {"action": "run-again"}
        client.submit(request.request_id, token, "user:2", request.digest, answer)


def tell(workflow: str, point: str, empty: Path, home: Path) -> None:
    """Kill a run at the point, start again, and print what became of it."""
    shutil.copytree(empty, home)
    died = child(lambda: live(workflow, home, point))
    again = child(lambda: live(workflow, home, ""))
    ended = json.loads((home / "ended.json").read_text()) if again == 0 else {}
    told = {"workflow": workflow, "point": point, "died": died, "again": again, **ended}
    print(json.dumps(told), flush=True)  # noqa: T201  the test reads it
    shutil.rmtree(home)


def main(base: Path, points: list[str]) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "obversa_site.settings"
    django.setup()
    import obversa_site.management.commands.up  # noqa: F401  loaded once for all children
    from runs import registry
    from tests.services.actions_flow import RECOVERIES

    registry.load()
    empty = base / "empty"
    empty.mkdir()
    child(lambda: prepare(empty))
    # Beside each other: most of the time goes by in waiting for a lease to lapse.
    at_work = [_fork(f"acts-{recovery}", points, empty, base) for recovery in RECOVERIES]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in at_work]
    sys.exit(max(codes))


def _fork(workflow: str, points: list[str], empty: Path, base: Path) -> int:
    pid = os.fork()
    if pid == 0:
        for point in points:
            tell(workflow, point, empty, base / workflow)
        os._exit(0)
    return pid


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
