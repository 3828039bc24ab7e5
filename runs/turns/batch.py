"""What a turn writes, sent together: a way to the database and back costs more than a row.

PostgreSQL takes all of it as one statement, whose text does not depend on how many rows there are
or which values are missing, so that it is read and planned once. SQLite is in this process and
takes one statement after the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.db import connection, models

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
    """A change of the rows with some values."""

    model: type[models.Model]
    changes: tuple[str, ...]
    where: tuple[str, ...]


Kind = Insert | Update
Rows = Sequence[Mapping[str, Any]]


class Batch:
    """Writes in the order they were added; no two of them may be about the same row."""

    def __init__(self) -> None:
        self._kinds: list[Kind] = []
        self._rows: list[Rows] = []
        self._then: list[Callable[[Any], None]] = []

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
        if not rows:
            return
        self._kinds.append(Insert(model, unique, update, returning=keys is not None))
        self._rows.append(rows)
        self._then.append(_nothing if keys is None else keys.extend)

    def update(
        self,
        model: type[models.Model],
        changes: Mapping[str, Any],
        *,
        lost: Exception | None = None,
        **where: Any,
    ) -> None:
        """Change the rows that have these values; raise `lost` when there are none."""
        self._kinds.append(Update(model, tuple(changes), tuple(where)))
        self._rows.append([{**_named("set", changes), **_named("if", where)}])
        self._then.append(_nothing if lost is None else _found_or(lost))

    def send(self) -> None:
        """Write everything; the row counts say who has won."""
        if not self._kinds:
            return
        write = _at_once if connection.vendor == "postgresql" else _one_by_one
        results = write(self._kinds, self._rows)
        for then, result in zip(self._then, results, strict=True):
            then(result)


def _nothing(_: Any) -> None:
    pass


def _found_or(lost: Exception) -> Callable[[int], None]:
    def check(count: int) -> None:
        if not count:
            raise lost

    return check


def _named(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}_{name}": value for name, value in values.items()}


# --- one after the other -------------------------------------------------------------------------


def _one_by_one(kinds: Sequence[Kind], given: Sequence[Rows]) -> list[Any]:
    return [_one(kind, rows) for kind, rows in zip(kinds, given, strict=True)]


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


def _at_once(kinds: Sequence[Kind], given: Sequence[Rows]) -> Sequence[Any]:
    texts = [_text(kind, rows) for kind, rows in zip(kinds, given, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(_statement(tuple(kinds)), texts)
        found: Sequence[Any] = cursor.fetchone()
    return found


def _text(kind: Kind, rows: Rows) -> str:
    form = _form(kind)
    written = [form.written(row) for row in rows]
    # Times and ids are all there is beside what JSON knows; PostgreSQL reads them as Python says.
    return _encode(written if isinstance(kind, Insert) else written[0])


_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


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
def _statement(kinds: tuple[Kind, ...]) -> str:
    parts, results = [], []
    for number, kind in enumerate(kinds):
        sql, result = (_insert if isinstance(kind, Insert) else _update)(kind)
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
    sql = (
        f"UPDATE {statements.quoted(kind.model._meta.db_table)} AS here SET {sets}"  # noqa: S608  no values
        f" FROM JSON_TO_RECORD(%s::json) AS given({', '.join(types)})"
        f" WHERE {same} RETURNING 1"
    )
    return sql, "COUNT(*)"


_TEXTS: Final = (models.CharField, models.TextField)


def _type(field: Any) -> str:
    """The type in which a value comes: a text is measured by its own column, and not cut here."""
    while field.remote_field is not None:
        field = field.target_field
    return "text" if isinstance(field, _TEXTS) else str(field.rel_db_type(connection))
