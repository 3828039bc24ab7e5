"""What a turn writes, sent together: a way to the database and back costs more than a row.

PostgreSQL takes all of it as one statement, whose text does not depend on how many rows there are
or which values are missing, so that it is read and planned once. SQLite is in this process and
takes one statement after the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson
from django.db import DataError, connection, models

from runs.turns import statements


@dataclass(frozen=True, slots=True)
class Insert:
    """New rows; one that is there already gets the columns to `update`."""

    model: type[models.Model]
    unique: tuple[str, ...] = ()
    update: tuple[str, ...] = ()
    returning: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """A change of the rows with some values; `must` says that there has to be one.

    `now` names a column whose new value has to be about the time that the database has.
    """

    model: type[models.Model]
    changes: tuple[str, ...]
    where: tuple[str, ...]
    must: bool = False
    now: str = ""


Kind = Insert | Update
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Part:
    """Writes of one kind; where keys of new rows go, and the error of whoever came too late."""

    kind: Kind
    rows: Rows
    keys: list[Any] | None = None
    lost: Exception | None = None

    def wrote(self, result: Any) -> None:
        """Take what the database says: keys, or how many rows there were."""
        if self.keys is not None:
            self.keys.extend(result)
        elif self.lost is not None and not result:
            raise self.lost


class Batch:
    """Writes in the order they were added; no two of them may be about the same row."""

    def __init__(self) -> None:
        self._parts: list[Part] = []

    def insert(
        self,
        model: type[models.Model],
        rows: Rows,
        *,
        unique: tuple[str, ...] = (),
        update: tuple[str, ...] = (),
        keys: list[Any] | None = None,
    ) -> None:
        """Add new rows, given by column; `keys`, when given, gets their keys."""
        if rows:
            kind = Insert(model, unique, update, returning=keys is not None)
            self._parts.append(Part(kind, rows, keys=keys))

    def update(
        self,
        model: type[models.Model],
        changes: Mapping[str, Any],
        *,
        lost: Exception | None = None,
        **where: Any,
    ) -> None:
        """Change the rows that have these values; raise `lost` when there are none."""
        self._parts.append(_update_part(model, changes, where, lost))

    def update_first(
        self,
        model: type[models.Model],
        changes: Mapping[str, Any],
        *,
        lost: Exception,
        now: str,
        **where: Any,
    ) -> None:
        """The same before all that was added so far, so that its row is locked before theirs.

        `now` names the column whose new value has to be about the time that the database has.
        """
        self._parts.insert(0, _update_part(model, changes, where, lost, now))

    def send(self) -> None:
        """Write everything within a transaction; the row counts say who has won."""
        if not self._parts:
            return
        if connection.vendor == "postgresql":
            results = _at_once(self._parts)
        else:
            results = [_one(part.kind, part.rows) for part in self._parts]
        for part, result in zip(self._parts, results, strict=True):
            part.wrote(result)

    def send_alone(self) -> None:
        """Write everything as one statement that is its own transaction: all of it or nothing.

        Only PostgreSQL does. What came too late lets the statement fail.
        """
        try:
            results = _at_once(self._parts, alone=True)
        except DataError as error:
            number = _LOST.search(str(error))
            lost = None if number is None else self._parts[int(number[1])].lost
            if lost is None:
                raise
            raise lost from error
        for part, result in zip(self._parts, results, strict=True):
            part.wrote(result)


def _update_part(
    model: type[models.Model],
    changes: Mapping[str, Any],
    where: Mapping[str, Any],
    lost: Exception | None,
    now: str = "",
) -> Part:
    kind = Update(model, tuple(changes), tuple(where), lost is not None, now)
    return Part(kind, [{**_named("set", changes), **_named("if", where)}], lost=lost)


def _named(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}_{name}": value for name, value in values.items()}


# --- one after the other -------------------------------------------------------------------------


def _one(kind: Kind, rows: Rows) -> Any:
    if isinstance(kind, Insert):
        return statements.insert(
            kind.model, rows, unique=kind.unique, update=kind.update, returning=kind.returning
        )
    (row,) = rows
    changes = {name: row[f"set_{name}"] for name in kind.changes}
    return statements.update(
        kind.model, changes, **{name: row[f"if_{name}"] for name in kind.where}
    )


# --- all at once ---------------------------------------------------------------------------------


_LOST: Final = re.compile(r'"lost 0 of part (\d+)"')


def _at_once(parts: Sequence[Part], *, alone: bool = False) -> Sequence[Any]:
    texts = [_text(part.kind, part.rows) for part in parts]
    with connection.cursor() as cursor:
        cursor.execute(_statement(tuple(part.kind for part in parts), alone=alone), texts)
        found: Sequence[Any] = cursor.fetchone()
    return found


def _text(kind: Kind, rows: Rows) -> str:
    form = _form(kind)
    written = [form.written(row) for row in rows]
    return _encode(written if isinstance(kind, Insert) else written[0])


def _encode(rows: Any) -> str:
    """Rows as JSON; times and ids are all there is beside what JSON knows."""
    try:
        return orjson.dumps(rows, default=str).decode()
    except orjson.JSONEncodeError:
        return _slowly(rows)  # a number that encoder has no room for, or a text it does not take


_slowly: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


@dataclass(frozen=True, slots=True)
class _Form:
    """How a row of one kind is written: most values are, as they are given."""

    names: frozenset[str]
    defaults: Mapping[str, Any]
    prepares: tuple[tuple[str, statements.Prepare], ...]

    def written(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The values of all columns by name; what the row has beside them is left out."""
        given = row if row.keys() <= self.names else {n: row[n] for n in self.names & row.keys()}
        found = {**self.defaults, **given}
        for name, prepare in self.prepares:
            if name in given:
                found[name] = prepare(given[name])
        return found


@lru_cache(maxsize=256)
def _form(kind: Kind) -> _Form:
    if isinstance(kind, Insert):
        written = statements.written(kind.model, "postgresql")
        defaults = {name: default for name, _, default in written}
    else:
        named = [("set", name) for name in kind.changes] + [("if", name) for name in kind.where]
        written = tuple(
            (f"{prefix}_{name}", statements.prepare_of(kind.model, name), None)
            for prefix, name in named
        )
        defaults = {}
    prepares = [(name, prepare) for name, prepare, _ in written if prepare is not statements.itself]
    return _Form(frozenset(name for name, _, _ in written), defaults, tuple(prepares))


@lru_cache(maxsize=256)
def _statement(kinds: tuple[Kind, ...], *, alone: bool) -> str:
    parts, results = [], []
    for number, kind in enumerate(kinds):
        sql, result = (_insert if isinstance(kind, Insert) else _update)(kind)
        if alone and isinstance(kind, Update) and kind.must:
            # No number: the statement fails and says why. What is constant would fail at once.
            lost = f"CAST('lost ' || {result} || ' of part {number}' AS bigint)"
            result = f"CASE {result} WHEN 0 THEN {lost} ELSE {result} END"
        parts.append(f"part_{number} AS ({sql})")
        results.append(f"(SELECT {result} FROM part_{number})")  # noqa: S608  no values
    return f"WITH {', '.join(parts)} SELECT {', '.join(results)}"


def _insert(kind: Any) -> tuple[str, str]:
    key = statements.quoted(kind.model._meta.pk.column)
    fields = statements.columns(kind.model)
    names = ", ".join(statements.quoted(field.column) for field in fields)
    types = ", ".join(f"{statements.quoted(f.column)} {_type(f)}" for f in fields)
    sql = (
        f"INSERT INTO {statements.quoted(kind.model._meta.db_table)} ({names})"  # noqa: S608  no values
        f" SELECT {names} FROM JSON_TO_RECORDSET(%s::json) AS given({types})"
        f"{statements.on_conflict(kind.model, kind.unique, kind.update)} RETURNING {key}"
    )
    return sql, f"ARRAY_AGG({key})" if kind.returning else "COUNT(*)"


def _update(kind: Any) -> tuple[str, str]:
    def column(name: str) -> str:
        return statements.quoted(statements.field_of(kind.model, name).column)

    def typed(prefix: str, name: str) -> str:
        return f'"{prefix}_{name}" {_type(statements.field_of(kind.model, name))}'

    sets = ", ".join(f'{column(name)} = given."set_{name}"' for name in kind.changes)
    same = " AND ".join(f'here.{column(name)} = given."if_{name}"' for name in kind.where)
    types = [typed("set", name) for name in kind.changes]
    types += [typed("if", name) for name in kind.where]
    if kind.now:
        same += f""" AND CLOCK_TIMESTAMP() - given."set_{kind.now}" BETWEEN {_ABOUT}"""
    sql = (
        f"UPDATE {statements.quoted(kind.model._meta.db_table)} AS here SET {sets}"  # noqa: S608  no values
        f" FROM JSON_TO_RECORD(%s::json) AS given({', '.join(types)})"
        f" WHERE {same} RETURNING 1"
    )
    return sql, "COUNT(*)"


_ABOUT: Final = "INTERVAL '-1 second' AND INTERVAL '1 second'"
_TEXTS: Final = (models.CharField, models.TextField)


def _type(field: Any) -> str:
    """The type in which a value comes: a text is measured by its own column, and not cut here."""
    while field.remote_field is not None:
        field = field.target_field
    return "text" if isinstance(field, _TEXTS) else str(field.rel_db_type(connection))
