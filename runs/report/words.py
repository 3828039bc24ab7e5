"""What happened, in a few words per kind of event (runs.md R276)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from runs.kernel.numbers import count_of, number_of
from runs.kernel.spending import is_reported
from runs.report import own_words
from runs.report.phrases import (
    BACK,
    MARKS,
    NOTE,
    START,
    WAITS,
    WRONG,
    Told,
    after,
    ended,
    mark_of,
    plain,
)
from runs.report.text import Wire, facts, items, joined, many, text
from runs.report.usage import tokens


def told(event: Wire) -> Told:
    """A mark, and the event in words; its kind alone where this version knows no words."""
    kind = text(event.get("kind"))
    tell = _TOLD.get(kind) or own_words.TOLD.get(kind)
    mark, words = (NOTE, "") if tell is None else tell(event)
    return mark, words or kind or "event"


def kickback(event: Wire) -> str:
    """A send-back: whose, to what, how many of how many, and why."""
    verdict = "accepted" if event.get("accepted") is True else "rejected"
    count, limit = (number_of(event.get(name)) for name in ("count", "limit"))
    of = "" if count is None else f"[{count}]" if limit is None else f"[{count}/{limit}]"
    ends = f"{text(event.get('from'))} -> {text(event.get('to'))}"
    return joined("kickback", verdict, ends, of, text(event.get("reason")), _note(event))


def _note(event: Wire) -> str:
    note = text(event.get("note"))
    return f"({note})" if note else ""


def _with_outcome(what: str, event: Wire, more: str = "") -> Told:
    outcome = event.get("outcome")
    return mark_of(outcome), joined(joined(what, ended(outcome)), more, by=", ")


def _run_end(event: Wire) -> Told:
    used = tokens(facts(event.get("usage")))
    return mark_of(event.get("outcome")), joined("run end", ended(event.get("outcome")), used)


def _run_start(event: Wire) -> Told:
    session = count_of(event.get("session"))
    again = f"session {session}" if session > 1 else ""
    return START, joined("run start", text(event.get("runId")), again)


def _loop_start(event: Wire) -> Told:
    most = number_of(event.get("max"))
    return START, "loop start" if most is None else f"loop start max {most}"


def _condition(name: str) -> Callable[[Wire], Told]:
    def tell(event: Wire) -> Told:
        result = facts(event.get("result"))
        met = result.get("met") is True
        words = joined("condition", text(event.get(name)), "met" if met else "not met")
        return NOTE, after(words, result.get("reason"))

    return tell


def _stall(event: Wire) -> Told:
    report = facts(event.get("report"))
    count = len(items(report.get("iterations"))) or count_of(report.get("window"))
    return WRONG, after(f"stall {many(count, 'iteration')}", report.get("reason"))


def _limit_wait(event: Wire) -> Told:
    seconds = (number_of(event.get("waitMs")) or 0) / 1000
    return WAITS, joined("limit wait", text(event.get("code")), f"{seconds:g}s")


def _limit_pause(event: Wire) -> Told:
    return WAITS, after(joined("limit pause", text(event.get("code"))), event.get("reason"))


def _node(event: Wire) -> Told:
    phase = text(event.get("phase"))
    status = ended(event.get("outcome"))
    attempt = count_of(event.get("attempt"))
    words = joined("node", text(event.get("node")), phase, f"({status})" if status else "")
    if phase == "start" and attempt > 1:
        words = f"{words}, attempt {attempt}"
    return START if phase == "start" else mark_of(event.get("outcome")), words


def _job_end(event: Wire) -> Told:
    what = joined("job", text(event.get("label")))
    return _with_outcome(what, event, text(facts(event.get("outcome")).get("summary")))


def _advice(event: Wire) -> Told:
    words = joined("advisor", text(event.get("label")), f"#{count_of(event.get('call'))}")
    return NOTE, joined(words, text(event.get("question")))


def _proof(event: Wire) -> Told:
    artifact = facts(event.get("artifact"))
    return NOTE, after(joined("proof", text(event.get("name"))), artifact.get("title"))


def _tool(event: Wire) -> Told:
    return NOTE, joined("tool", *(text(event.get(name)) for name in ("name", "phase", "target")))


def _usage(event: Wire) -> Told:
    usage = facts(event.get("usage"))
    used = tokens(usage) if is_reported(usage) else "usage unknown"
    failed = event.get("failed") is True
    who = joined(text(event.get("role")), text(event.get("stage")))
    words = joined(text(event.get("model")) or "a model", used, "failed" if failed else "")
    return WRONG if failed else NOTE, joined(words, who, by=", ")


def _judge(event: Wire) -> Told:
    given = number_of(event.get("round"))
    names = (text(event.get(name)) for name in ("route", "rule"))
    around = "" if given is None else f"round {given}"
    words = joined("judge", text(event.get("target")), around, *names)
    return NOTE, after(words, event.get("reason"))


def _goal(event: Wire) -> Told:
    wanted = [facts(one) for one in items(event.get("requirements"))]
    unmet = [text(one.get("requirement")) for one in wanted if one.get("verdict") != "met"]
    met = f"{len(wanted) - len(unmet)} of {len(wanted)} met"
    label = joined("goal", text(event.get("label")), f"round {count_of(event.get('round'))}")
    more = f"unmet: {'; '.join(unmet)}" if unmet else ""
    return WRONG if unmet else MARKS["pass"], joined(f"{label}, {met}", more, by=", ")


def _synthesis(event: Wire) -> Told:
    results = [text(facts(one).get("result")) for one in items(event.get("entries"))]
    counts = [f"{results.count(name)} {name}" for name in dict.fromkeys(results) if name]
    failed = "merge failed" if event.get("mergeFailed") is True else ""
    return NOTE, joined(
        joined("synthesis", text(event.get("label"))), ", ".join(counts), failed, by=": "
    )


def _change(event: Wire) -> Told:
    files = many(len(items(event.get("files"))), "file")
    lines = f"+{count_of(event.get('added'))} -{count_of(event.get('removed'))}"
    what = joined("change", text(event.get("node")), f"round {count_of(event.get('round'))}")
    return NOTE, f"{what}, {files}, {lines}"


def _error(event: Wire) -> Told:
    return WRONG, after(joined("error", text(event.get("code"))), event.get("message"))


def _log(event: Wire) -> Told:
    level = text(event.get("level"))
    loud = level if level in ("warn", "error") else ""
    return WRONG if level == "error" else NOTE, joined("log", loud, text(event.get("message")))


def _steps(event: Wire) -> Told:
    return START, f"dag start {many(len(items(event.get('nodes'))), 'node')}"


def _loop_end(event: Wire) -> Told:
    return _with_outcome("loop end", event, many(count_of(event.get("iterations")), "iteration"))


_TOLD: Final[Mapping[str, Callable[[Wire], Told]]] = {
    "run:start": _run_start,
    "run:end": _run_end,
    "run:abort": plain("run abort", WRONG, "signal"),
    "monitor": plain("monitor", more="url"),
    "dag:start": _steps,
    "dag:node": _node,
    "dag:kickback": lambda event: (BACK, kickback(event)),
    "dag:end": lambda event: _with_outcome("dag end", event),
    "loop:start": _loop_start,
    "loop:iteration": lambda event: (NOTE, f"iteration {count_of(event.get('iteration'))}"),
    "loop:condition": _condition("which"),
    "loop:review": lambda event: _with_outcome("review", event),
    "loop:stall": _stall,
    "loop:end": _loop_end,
    "condition:result": _condition("label"),
    "limit:wait": _limit_wait,
    "limit:pause": _limit_pause,
    "job:start": lambda event: (START, joined("job", text(event.get("label")))),
    "job:end": _job_end,
    "proof": _proof,
    "advisor:consult": _advice,
    "engine:tool": _tool,
    "engine:usage": _usage,
    "refine:judge": _judge,
    "goal:check": _goal,
    "review:synthesis": _synthesis,
    "round:change": _change,
    "log": _log,
    "error": _error,
}
