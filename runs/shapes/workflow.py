"""A team in one file: a brief, its roles, and the stages in order (workflows.md sections 2-4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from runs.kernel.errors import DeclarationError, as_loop_error
from runs.kernel.events import EventKind
from runs.kernel.jsonable import JSONValue, digest_hex
from runs.kernel.outcomes import Finding, Outcome, failing, revision_request
from runs.kernel.seats import SeatIdentity, TeamSeat, assert_distinct_seats
from runs.shapes.brief import Brief, to_brief
from runs.shapes.dag import Node, dag
from runs.shapes.job import Graph, Job, Leaf, outcome_of
from runs.shapes.loop import loop
from runs.shapes.panel import review_panel
from runs.shapes.person import Person, input_job, review_job
from runs.shapes.prompts import Task
from runs.shapes.roles import Role, Seats, read_roles, read_stages, read_timeout, role_json
from runs.shapes.seatwork import guarded, missing_files, reviewer_job, writer_job
from runs.shapes.stage import Stage
from runs.shapes.steps import command_job, fn_job

# What the rounds of a reviewed stage, and its review, are called in paths.
ROUNDS: Final = "rounds"
REVIEW: Final = "review"


def workflow(
    name: str,
    *,
    brief: str | Brief,
    roles: Mapping[str, Any],
    stages: Iterable[Stage],
    options: Mapping[str, Any] | None = None,
) -> Job:
    """A job whose stages run in order, each done by a role and, where it says so, reviewed.

    `brief` is the work, as text or from brief_from_file(). `roles` maps a name to a seat, a list
    of seats (a panel) or a person. `stages` are made by stage(). `options.timeout` is a duration
    such as "10m" for every agent stage and review. A stage that reviews or is sent back to is built
    `refine` + 1 times at most. Raises DeclarationError, which is a TypeError, for a team that
    cannot be: before any model runs.
    """
    if not isinstance(name, str) or not name.strip():
        raise DeclarationError("a workflow needs a name.")
    name = name.strip()
    made = _Team(
        name, to_brief(brief), read_roles(roles), read_stages(name, stages), read_timeout(options)
    )
    return made.job()


class _Team:
    """A workflow being put together."""

    def __init__(
        self,
        name: str,
        brief: Brief,
        roles: Mapping[str, Role],
        stages: tuple[Stage, ...],
        timeout_ms: int | None,
    ) -> None:
        self.name = name
        self.brief = brief
        self.roles = roles
        self.stages = stages
        self.timeout_ms = timeout_ms
        self.by_name = {one.name: one for one in stages}
        listed = [*brief.files, *(file for one in stages for file in one.writes)]
        self.files = tuple(dict.fromkeys(listed))
        self.targets = {one.sends_back_to for one in stages if one.sends_back_to is not None}

    def job(self) -> Job:
        for place, one in enumerate(self.stages):
            self._check(one, self.stages[:place])
        nodes = {
            one.name: self._node(one, self.stages[:place]) for place, one in enumerate(self.stages)
        }
        limits = {one.name: one.builds - 1 for one in self.stages if one.name in self.targets}
        made = dag(self.name, nodes, max_kickbacks=limits or None, brief=self.brief.text)
        assert isinstance(made, Graph)
        shape = replace(made.shape, declared=digest_hex(self._declared()))
        return replace(made, shape=shape)

    def _declared(self) -> dict[str, JSONValue]:
        """What must stay the same for a record to go on (W193, W194)."""
        return {
            "brief": {"text": self.brief.text, "files": list(self.brief.files)},
            "roles": {name: role_json(role) for name, role in self.roles.items()},
            "stages": [one.to_json() for one in self.stages],
        }

    # --- what cannot be --------------------------------------------------------------------------

    def _check(self, one: Stage, before: Sequence[Stage]) -> None:
        self._check_names(one, {other.name for other in before})
        where = f"stage {one.name!r}"
        if one.refine is not None and one.reviewed_by is None and one.name not in self.targets:
            text = "nobody reviews it, and nothing is sent back to it."
            raise DeclarationError(f"refine of {where} has nothing to count: {text}")
        if one.agent is not None:
            self._seat(one, "agent")
        if one.panel is not None:
            seats = self._panel(one, "panel")
            self._agree(where, one, len(seats))
            _need_families(one.panel, seats, self._writers(one, before))
        if one.input is not None and not isinstance(self._role(one, "input"), Person):
            raise DeclarationError(f"input of {where} is a person; {one.input!r} is none.")
        if one.reviewed_by is not None:
            self._check_review(where, one, one.reviewed_by)

    def _check_names(self, one: Stage, earlier: set[str]) -> None:
        named = {"needs": one.needs, "sends_back_to": (one.sends_back_to,)}
        for key, names in named.items():
            for other in names:
                if other is not None and other not in earlier:
                    text = (
                        f"{key} of stage {one.name!r} names {other!r}, which is no earlier stage."
                    )
                    raise DeclarationError(text)

    def _check_review(self, where: str, one: Stage, role: str) -> None:
        if isinstance(self._role(one, "reviewed_by"), Person):
            if one.agree is not None:
                raise DeclarationError(f"{where} is reviewed by a person, so nobody has to agree.")
            return
        seats = self._panel(one, "reviewed_by")
        self._agree(where, one, len(seats))
        _need_families(role, seats, [(one.name, self._seat(one, "agent").identity)])

    def _role(self, one: Stage, key: str) -> Role:
        named = getattr(one, key)
        if named not in self.roles:
            raise DeclarationError(
                f"{key} of stage {one.name!r} names {named!r}, which is no role."
            )
        return self.roles[named]

    def _seat(self, one: Stage, key: str) -> TeamSeat:
        role = self._role(one, key)
        if not isinstance(role, TeamSeat):
            named = getattr(one, key)
            raise DeclarationError(f"{key} of stage {one.name!r} is one seat; {named!r} is none.")
        return role

    def _panel(self, one: Stage, key: str) -> Seats:
        role, named = self._role(one, key), getattr(one, key)
        if not isinstance(role, tuple):
            raise DeclarationError(
                f"{key} of stage {one.name!r} is a list of seats; {named!r} is none."
            )
        for place, seat in enumerate(role):
            if not seat.identity.tools:
                raise DeclarationError(
                    f"seat {place} of role {named!r} has no tool to read the work with."
                )
        return role

    def _agree(self, where: str, one: Stage, count: int) -> None:
        if one.agree is not None and one.agree > count:
            raise DeclarationError(f"agree of {where} is a number from 1 to {count}.")

    def _writers(self, one: Stage, before: Sequence[Stage]) -> list[tuple[str, SeatIdentity]]:
        """The stages whose work a panel stage reviews, and who writes them (W9, W40)."""
        agents = [other for other in before if other.agent is not None]
        found = agents[-1:]
        target = self.by_name.get(one.sends_back_to or "")
        if target is not None and target.agent is not None and target not in found:
            found.append(target)
        return [(other.name, self._seat(other, "agent").identity) for other in found]

    # --- the stages as nodes ---------------------------------------------------------------------

    def _node(self, one: Stage, before: Sequence[Stage]) -> Node:
        needs = [before[-1].name] if before else []
        return Node(
            job=self._stage_job(one, before),
            needs=list(dict.fromkeys([*needs, *one.needs])),
            desc=one.desc,
            gate=one.gate,
            when=one.when,
            optional=one.optional,
            retry_safe=one.retry_safe,
            accepts_kickback_to=[one.sends_back_to] if one.sends_back_to else [],
        )

    def _stage_job(self, one: Stage, before: Sequence[Stage]) -> Job:
        match one.kind:
            case "agent":
                return self._agent(one, before)
            case "panel":
                return self._reviewers(
                    one.name,
                    one,
                    self._panel(one, "panel"),
                    self._writers(one, before),
                    self._reviewed_files(one, before),
                )
            case "input":
                role = self._role(one, "input")
                assert isinstance(role, Person)
                return input_job(role, one.name, one.sends_back_to, self.brief.text)
            case "run":
                assert one.run is not None
                command = one.run if isinstance(one.run, str) else list(one.run)
                job = command_job(one.name, command, target=one.sends_back_to)
                return self._beside_others(one, _repeating(job, one))
            case _:
                return self._beside_others(one, _function(one))

    def _agent(self, one: Stage, before: Sequence[Stage]) -> Job:
        seat = self._seat(one, "agent")
        task = Task(
            brief=self.brief.text,
            stage=one.name,
            desc=one.desc,
            gate=one.gate,
            files=self._declared_until(one, before),
            writes=one.writes,
        )
        writer = writer_job(
            task,
            seat,
            effort=one.effort,
            target=one.sends_back_to,
            timeout_ms=self.timeout_ms,
            retry_safe=one.retry_safe,
            is_reviewed=one.reviewed_by is not None,
        )
        body = self._beside_others(one, writer)
        if one.reviewed_by is None:
            return body
        role = self._role(one, "reviewed_by")
        if isinstance(role, Person):
            review = review_job(role, one.name, one.writes)
        else:
            assert isinstance(role, tuple)
            writers = [(one.name, seat.identity)]
            review = self._reviewers(REVIEW, one, role, writers, one.writes)
        return loop(ROUNDS, body, review=review, max=one.builds, keeps_rounds=True)

    def _reviewers(
        self,
        label: str,
        one: Stage,
        seats: Seats,
        writers: Sequence[tuple[str, SeatIdentity]],
        files: tuple[str, ...],
    ) -> Job:
        task = Task(
            brief=self.brief.text, stage=one.name, desc=one.desc, gate=one.gate, writes=files
        )
        families = frozenset(seat.identity.model_family.lower() for seat in seats)
        names = _names(seats)
        reviewers = [
            {
                "name": name,
                "job": guarded(
                    reviewer_job(
                        name,
                        task,
                        seat,
                        writers=writers,
                        families=families,
                        timeout_ms=self.timeout_ms,
                    ),
                    name,
                    self.files,
                    phase="review",
                ),
            }
            for name, seat in zip(names, seats, strict=True)
        ]
        agree: int | Literal["all"] = "all" if one.agree is None else one.agree
        return review_panel(label=label, reviewers=reviewers, pass_=agree, target=one.sends_back_to)

    def _beside_others(self, one: Stage, job: Job) -> Job:
        """The step, which may change no declared file but its own (W44)."""
        others = [file for file in self.files if file not in one.writes]
        return guarded(job, one.name, others, phase="body")

    def _reviewed_files(self, one: Stage, before: Sequence[Stage]) -> tuple[str, ...]:
        """What a panel stage reads (W40)."""
        target = self.by_name.get(one.sends_back_to or "")
        if target is not None and target.writes:
            return target.writes
        agents = [other for other in before if other.agent is not None]
        return agents[-1].writes if agents else self.brief.files

    def _declared_until(self, one: Stage, before: Sequence[Stage]) -> tuple[str, ...]:
        listed = [*self.brief.files, *(file for other in before for file in other.writes)]
        return tuple(dict.fromkeys([*listed, *one.writes]))


def _need_families(role: str, seats: Seats, writers: Sequence[tuple[str, SeatIdentity]]) -> None:
    """Nobody's work is reviewed by a model of its own family (W9)."""
    named = [(f"seat {place} of {role!r}", it.identity) for place, it in enumerate(seats)]
    assert_distinct_seats(named)
    for stage, identity in writers:
        assert_distinct_seats([(f"the writer of {stage!r}", identity), *named])


def _names(seats: Seats) -> list[str]:
    """What the members of a panel are called: by their models, which differ."""
    names: list[str] = []
    for seat in seats:
        name = seat.identity.model.rpartition("/")[2]
        names.append(name if name not in names else f"{name}-{len(names)}")
    return names


def _repeating(job: Job, one: Stage) -> Job:
    assert isinstance(job, Leaf)
    return replace(job, shape=replace(job.shape, retry_safe=one.retry_safe))


def _function(one: Stage) -> Job:
    """A stage that is regular code (W34-W36)."""
    job = one.fn if isinstance(one.fn, Job) else fn_job(one.name, one.fn)
    if not isinstance(job, Leaf):
        raise DeclarationError(f"fn of stage {one.name!r} is a step or a function, not a graph.")
    body = job.body

    def work(ctx: Any) -> Any:
        try:
            made = body(ctx)
        except Exception as raised:
            error = as_loop_error(raised, fallback="BODY", phase="body")
            if one.sends_back_to is None or error.code == "ABORTED":
                raise
            ctx.emit(EventKind.ERROR, message=error.message, code=error.code)
            return _sent_back(failing(error), one.sends_back_to)
        if not isinstance(made, Outcome | str | Mapping | None):
            return made
        outcome = outcome_of(one.name, made)
        if outcome.passed:
            return missing_files(ctx, one.name, one.writes, outcome, again=False)
        if outcome.status == "fail" and one.sends_back_to is not None:
            return _sent_back(outcome, one.sends_back_to)
        return outcome

    shape = replace(job.shape, retry_safe=one.retry_safe or job.shape.retry_safe)
    return replace(job, shape=shape, body=work)


def _sent_back(outcome: Outcome, target: str) -> Outcome:
    """A failure that names no target goes to the stage's own, with all that it holds (W36)."""
    if outcome.revision is not None and outcome.revision.target is not None:
        return outcome
    findings = () if outcome.revision is None else outcome.revision.findings
    reason = outcome.summary or (None if outcome.revision is None else outcome.revision.reason)
    found = findings or ((Finding(evidence=reason),) if reason else ())
    request = revision_request(target, reason, findings=found)
    return outcome.evolve(revision=request.revision)
