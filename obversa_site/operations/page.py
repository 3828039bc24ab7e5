"""The page about the installation as its template reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet
from django.urls import reverse

from gates.lists.rows import question_line
from gates.models import Delivery, Request
from gates.notify import kinds
from obversa_site.operations import access, broker, crew, stuck
from obversa_site.operations.crew import Doing, Process
from obversa_site.operations.stuck import Some
from runs.models import Attempt, Run
from runs.pages import words
from runs.people.principals import Principal
from runs.plaintext import visible
from runs.turns.repairs import Repair

FAILED: Final = 20
REPAIRS: Final = 20
_ROLES: Final = {"worker": "worker", "web": "web", "sweep": "sweep"}


def page(who: Principal, now: datetime) -> dict[str, Any]:
    """What operations/page.html shows; about twenty statements, however much there is."""
    processes = crew.processes(now)
    looked = broker.look()
    waiting, steps = crew.queues(), crew.queue_of_steps()
    failures = Delivery.objects.filter(state=Delivery.State.FAILED)
    failed = _first_of(failures)
    return {
        "stuck": _stuck(),
        "processes": [_process(one) for one in processes if one.role != "sweep"],
        "workers_alive": sum(one.role == "worker" and not one.is_silent for one in processes),
        "ready_count": sum(queue.ready_count for queue in waiting),
        "running_count": sum(queue.running_count for queue in waiting),
        # Without a broker nothing goes through the others.
        "queues": [one for one in waiting if looked is not None or one.name == steps],
        "has_broker": looked is not None,
        "broker_answers": looked is not None and looked.answers,
        "broker_is_wanted": bool(settings.CELERY_BROKER_URL),
        "failed": [_failed(row) for row in failed],
        "failed_count": stuck.count_text(stuck.counted(failures)) if failed else "",
        "log_url": reverse("gates:delivery-list"),
        "may_send_again": access.may_send_again(who),
        "sweep": next((one for one in processes if one.role == "sweep"), None),
        "repairs": list(Repair.objects.order_by("-pk")[:REPAIRS]),
        "repairs_kept": REPAIRS,
    }


def _process(one: Process) -> dict[str, Any]:
    facts = one.facts
    sockets = facts.get("sockets") or {}
    return {
        "name": one.name,
        "role": _ROLES.get(one.role, one.role),
        "is_silent": one.is_silent,
        "heard_at": one.heard_at,
        "version": facts.get("version", ""),
        "started_at": _moment(facts.get("startedAt")),
        "queues": ", ".join(facts.get("queues") or ()),
        "slots": facts.get("slots") or 0,
        "sockets": sum(sockets.values()) if one.role == "web" else None,
        "doing": [_doing(each) for each in one.doing],
        "more": one.doing_count - len(one.doing),
    }


def _doing(each: Doing) -> dict[str, Any]:
    return {**_attempt(each.attempt), "is_lapsed": each.is_lapsed}


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "run": visible(words.title(attempt.run)),
        "short": attempt.run.short,
        "url": attempt.run.get_absolute_url(),
        "step": visible(words.BETWEEN.join(attempt.path)),
        "worker": attempt.worker,
        "since": attempt.claimed_at,
        "lease_until": attempt.lease_until,
    }


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _stuck() -> list[dict[str, Any]]:
    """The kinds of which there are some, each with its first rows."""
    found = stuck.stuck()
    asked = [*found.nobody.rows, *found.overdue.rows]
    names = stuck.names_of({row.audience_id for row in asked})
    question = partial(_question, names=names)
    kinds_of: tuple[tuple[str, str, str, Some[Any], Callable[[Any], dict[str, Any]]], ...] = (
        (
            "held",
            "Held runs",
            "Their workflow changed or does not load. Open one to go on or start again.",
            found.held,
            _held,
        ),
        (
            "lapsed",
            "Steps whose worker fell silent",
            "The next sweep counts them as interrupted.",
            found.lapsed,
            _lapsed,
        ),
        (
            "nobody",
            "Questions nobody can answer",
            "Their audience names no active person, key or service. Assign one, or fill the team.",
            found.nobody,
            question,
        ),
        (
            "overdue",
            "Questions past their time",
            "They stay open until somebody answers.",
            found.overdue,
            question,
        ),
    )
    return [
        {
            "id": name,
            "title": title,
            "help": text,
            "count": stuck.count_text(some.count),
            "rows": [shown(row) for row in some.rows],
            "more": some.count - len(some.rows),
        }
        for name, title, text, some, shown in kinds_of
        if some.rows
    ]


def _held(run: Run) -> dict[str, Any]:
    return {
        "url": run.get_absolute_url(),
        "title": visible(words.title(run)),
        "place": run.short,
        "text": visible(run.held_reason),
        "at": run.changed_at,
        "kind": "age",
    }


def _lapsed(attempt: Attempt) -> dict[str, Any]:
    told = _attempt(attempt)
    return {
        "url": told["url"],
        "title": told["run"],
        "place": f"{told['step']} {told['short']}",
        "text": told["worker"],
        "at": attempt.lease_until,
        "kind": "age",
    }


def _question(row: Request, names: Mapping[int, str]) -> dict[str, Any]:
    return {
        "url": row.get_absolute_url(),
        "title": question_line(row.decision_text),
        "place": f"{visible(words.title(row.run))} {row.run.short}",
        "text": f"for {visible(names.get(row.audience_id, 'nobody'))}",
        "at": row.due_at or row.created_at,
        "kind": "left" if row.due_at else "age",
    }


def _first_of(failures: QuerySet[Delivery]) -> list[Delivery]:
    found = failures.order_by("-pk")
    return list(found.select_related("channel__user", "channel__team", "request", "run")[:FAILED])


def _failed(row: Delivery) -> dict[str, Any]:
    channel = row.channel
    owner = channel.team.name if channel.team is not None else str(channel.user)
    about = row.request or row.run
    if row.request is not None:
        title = question_line(row.request.decision_text)
    else:
        title = words.title(row.run) if row.run is not None else kinds.WORDS.get(row.kind, row.kind)
    return {
        "uid": row.uid,
        "title": visible(title),
        "url": about.get_absolute_url() if about is not None else "",
        "kind": kinds.WORDS.get(row.kind, row.kind),
        "owner": visible(owner),
        "channel": visible(channel.name),
        "error": visible(row.error),
        "attempts": row.attempts,
        "at": row.done_at,
        "can_again": channel.removed_at is None,
    }
