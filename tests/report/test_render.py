from __future__ import annotations

from typing import Any

from hypothesis import given

from runs import fn_job, kickback, pipeline, render_record, run, summarize_record
from tests.report.records import at, call, end, graph, node, record, sent_back, start
from tests.report.test_lines import ANY_EVENT

WHOLE = record(
    start(runId="release-1a2b3c", workflow="release"),
    {"kind": "monitor", "url": "http://127.0.0.1:4000/"},
    graph("write", "check"),
    node("write", "start"),
    at("g", "write", kind="job:start", label="write"),
    call("g", "write", inputTokens=1200, outputTokens=300),
    at("g", "write", kind="engine:tool", name="Read", phase="use", target="a.py"),
    at("g", "write", kind="engine:tool", name="Read", phase="result", target="a.py"),
    at("g", "write", kind="engine:tool", name="Read", phase="use", target="b.py"),
    at("g", "write", kind="log", level="info", message="x" * 120),
    at("g", "write", kind="heartbeat"),
    node("write", "done", status="pass", summary="- wrote two files"),
    node("check", "start"),
    node("check", "done", status="fail", summary="the header is missing"),
    sent_back("check", "write"),
    node("write", "start", attempt=2),
    node("write", "done", attempt=2, status="pass", late=True, summary="again"),
    node("check", "start", attempt=2),
    node("check", "done", attempt=2, status="fail", summary="still missing"),
    sent_back("check", "write", count=2, accepted=False),
    at("g", "check", kind="acme:blip"),
    {"kind": "dag:end", "path": ["g"], "outcome": {"status": "fail"}},
    end("fail"),
)

PAGE = """\
# release-1a2b3c

- Workflow: release
- Started: 2026-01-01 00:00:00 UTC
- Ended: 2026-01-01 00:00:22 UTC, after 22.0 s
- Outcome: fail
- Tokens: 12,345 in, 678 out
- Monitor: http://127.0.0.1:4000/

## write

### Run 1: pass, 8.0 s, at 2026-01-01 00:00:03 UTC

- wrote two files
- 1 engine call
- Read \u00d72: a.py, b.py
- log xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…

kickback accepted check -> write [1/1] add the header row

### Run 2: pass late, 1.0 s, at 2026-01-01 00:00:15 UTC

- again

## check

### Run 1: fail, 1.0 s, at 2026-01-01 00:00:12 UTC

- the header is missing

### Run 2: fail, 1.0 s, at 2026-01-01 00:00:17 UTC

- still missing
- kickback rejected check -> write [2/1] add the header row
- acme:blip
"""


def test_a_record_is_a_page_with_a_section_for_each_node() -> None:
    assert render_record(WHOLE, line_width=63) == PAGE


def test_the_lines_are_a_hundred_wide_unless_said_otherwise() -> None:
    longest = max(map(len, render_record(WHOLE).splitlines()))

    assert longest == 100


def test_a_record_without_an_end_says_so() -> None:
    page = render_record(record(start(), graph("a"), node("a", "start")))

    assert page == (
        "# g\n\n- Started: 2026-01-01 00:00:00 UTC\n- Ended: no end recorded\n"
        "- Tokens: 0 in, 0 out\n\n## a\n\n"
        "### Run 1: no end recorded, at 2026-01-01 00:00:02 UTC\n"
    )


def test_a_question_and_a_send_back_are_never_cut() -> None:
    question = "Ship " + "very " * 40 + "much?"
    asked = at("g", "ok", kind="callback-requested", request={"decisionText": question})
    back = {**sent_back("ok", "a"), "reason": "long " * 40 + "end"}
    events = record(start(), graph("a", "ok"), node("ok", "start"), asked, back)

    page = render_record(events, line_width=40)

    assert f"- question: {question}\n" in page
    assert "long end\n" in page


def test_a_pause_tells_its_question_once() -> None:
    paused = node("ok", "done", status="paused", summary="waiting for a person: Ship it?")
    asked = at("g", "ok", kind="callback-requested", request={"decisionText": "Ship it?"})

    with_question = render_record(record(start(), graph("ok"), node("ok", "start"), asked, paused))
    without = render_record(record(start(), graph("ok"), node("ok", "start"), paused))

    assert with_question.count("Ship it?") == 1
    assert "- paused: waiting for a person: Ship it?\n" in without


def test_what_is_below_a_node_belongs_to_it() -> None:
    inner = ("g", "a", "h")
    page = render_record(
        record(
            start(),
            graph("a"),
            node("a", "start"),
            graph("x", path=inner),
            node("x", "start", path=inner),
            at(*inner, "x", kind="log", message="hello"),
            node("x", "done", path=inner, status="pass"),
            node("a", "done", status="pass"),
        )
    )

    assert "- h \u203a x: log hello\n- h: node x done (pass)\n" in page
    assert "## x" not in page


def test_a_condition_read_before_a_run_stands_at_that_run() -> None:
    read = at("g", "a", kind="condition:result", label="when", result={"met": True, "reason": "ok"})
    never = at("g", "b", kind="condition:result", label="when", result={"met": True, "reason": "?"})
    page = render_record(record(start(), graph("a", "b"), read, node("a", "start"), never))

    assert page.index("- b: condition when met: ?") < page.index("## a")
    assert page.endswith("UTC\n\n- condition when met: ok\n")


def test_a_later_session_takes_the_end_back() -> None:
    first = [start(runId="r"), end("paused")]

    resumed = render_record(record(*first, start(runId="r", session=2)))
    ended = render_record(record(*first, start(runId="r", session=2), end("pass")))

    assert "no end recorded" in resumed
    assert "Outcome: pass" in ended
    assert "- session 2\n" in ended


def test_what_the_memory_driver_recorded_reads_as_a_page() -> None:
    job = pipeline(
        "small",
        [
            {"name": "build", "job": fn_job("build", lambda ctx: "built")},
            {"name": "look", "job": fn_job("look", _look), "accepts_kickback_to": ["build"]},
        ],
        max_kickbacks=1,
    )

    result = run(job)
    page = render_record(result.events)

    assert page.startswith("# small\n")
    assert "kickback accepted look -> build [1/1] again\n\n### Run 2: pass" in page
    assert summarize_record(result.events)["outcome"] == result.outcome.to_json()


def _look(ctx: Any) -> Any:
    return kickback("build", "again") if ctx.graph.attempt == 1 else "good"


@given(first=ANY_EVENT, second=ANY_EVENT, third=ANY_EVENT)
def test_any_json_events_make_a_page(first: Any, second: Any, third: Any) -> None:
    page = render_record([first, second, third])

    assert page.startswith("# ")
    assert page.endswith("\n")
    page.encode()
