"""The statements of every turn, each built once: building them anew costs more than running them.

They say what the ORM would say, for rows given by column and for conditions on columns alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, models

from runs.fields import JSONText, Ready, stored

M = TypeVar("M", bound=models.Model)
ROWS_AT_ONCE: Final = 500


def insert(
    model: type[models.Model],
    rows: Sequence[Mapping[str, Any]],
    *,
    unique: tuple[str, ...] = (),
    update: tuple[str, ...] = (),
    returning: bool = False,
) -> list[Any]:
    """Write new rows, given by column; one that is there already gets the columns to `update`.

    What a row does not name gets its default. Returns the keys when asked.
    """
    keys: list[Any] = []
    fields = written(model, connection.vendor)
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[begin : begin + ROWS_AT_ONCE]
        values = [
            prepare(row[name]) if name in row else default
            for row in some
            for name, prepare, default in fields
        ]
        with connection.cursor() as cursor:
            cursor.execute(_insert(model, len(some), unique, update, returning), values)
            if returning:
                keys += [key for (key,) in cursor.fetchall()]
    return keys


Prepare = Callable[[Any], Any]


@lru_cache
def written(model: type[models.Model], vendor: str) -> tuple[tuple[str, Prepare, Any], ...]:
    """Name, preparation and default of each column but a key that the database makes."""
    found = []
    for field in columns(model):
        prepare = _prepare(field, vendor)
        default = None if field.default is models.NOT_PROVIDED else field.get_default()
        if default is None and field.empty_strings_allowed and not field.null:
            default = ""
        found.append((field.attname, prepare, None if default is None else prepare(default)))
    return tuple(found)


def columns(model: type[models.Model]) -> list[Any]:
    """The columns that are written: all but a key that the database makes."""
    return [
        field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)
    ]


@lru_cache(maxsize=1024)
def _prepare(field: Any, vendor: str) -> Prepare:
    """What makes a column's value of a Python value; text and numbers are it already."""
    if type(field) in _AS_THEY_ARE:
        return itself
    if type(field) is JSONText:
        return _text
    if vendor == "postgresql" and type(field) in _AS_THEY_ARE_ON_POSTGRESQL:
        return itself
    return lambda value: field.get_db_prep_save(value, connection)


def _text(value: Any) -> str | None:
    return None if value is None else stored(value)


def itself(value: Any) -> Any:
    """The value of a column that takes what Python has."""
    return value


_AS_THEY_ARE: Final = {
    models.CharField,
    models.TextField,
    models.PositiveIntegerField,
    models.PositiveBigIntegerField,
    models.BigAutoField,
}
_AS_THEY_ARE_ON_POSTGRESQL: Final = {models.DateTimeField, models.UUIDField, models.ForeignKey}


@lru_cache(maxsize=1024)
def _insert(
    model: type[models.Model],
    count: int,
    unique: tuple[str, ...],
    update: tuple[str, ...],
    returning: bool,
) -> str:
    named = [field.column for field in columns(model)]
    row = f"({', '.join(['%s'] * len(named))})"
    table, names = quoted(model._meta.db_table), ", ".join(map(quoted, named))
    sql = f"INSERT INTO {table} ({names}) VALUES {', '.join([row] * count)}"  # noqa: S608  no values
    sql += on_conflict(model, unique, update)
    if returning:
        assert model._meta.pk is not None
        sql += f" RETURNING {quoted(model._meta.pk.column)}"
    return sql


def on_conflict(model: type[models.Model], unique: tuple[str, ...], update: tuple[str, ...]) -> str:
    """What an insertion says about rows that are there already."""
    if not unique:
        return ""
    changes = (f"{name} = EXCLUDED.{name}" for name in map(_column_of(model), update))
    same = ", ".join(map(_column_of(model), unique))
    return f" ON CONFLICT ({same}) DO UPDATE SET {', '.join(changes)}"


def update(model: type[models.Model], changes: Mapping[str, Any], **where: Any) -> int:
    """Change the rows that have these values; returns how many, so that one writer wins."""
    sql, prepares = _update(model, tuple(changes), tuple(where), connection.vendor)
    given = (*changes.values(), *where.values())
    values = [prepare(value) for prepare, value in zip(prepares, given, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.rowcount)


@lru_cache(maxsize=1024)
def _update(
    model: type[models.Model], changes: tuple[str, ...], where: tuple[str, ...], vendor: str
) -> tuple[str, tuple[Prepare, ...]]:
    column = _column_of(model)
    table = quoted(model._meta.db_table)
    sets = ", ".join(f"{column(name)} = %s" for name in changes)
    sql = f"UPDATE {table} SET {sets} WHERE {_condition(model, where)}"  # noqa: S608  no values
    return sql, tuple(_prepare(field_of(model, name), vendor) for name in (*changes, *where))


@lru_cache(maxsize=4096)
def path_text(path: tuple[str, ...]) -> Ready:
    """A path as its column has it."""
    return Ready(stored(path))


def lock(model: type[M], **where: Any) -> tuple[M, Any] | None:
    """The one row with these values, locked until the end, and the database's time."""
    sql, prepares = _select(model, tuple(where), connection.vendor, lock=True)
    given = [prepare(value) for prepare, value in zip(prepares, where.values(), strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        found = cursor.fetchone()
    if found is None:
        return None
    return made(model, found), found[-1]


def made(model: type[M], found: Sequence[Any]) -> M:
    """The row of which a statement read the columns, in their order."""
    names, convert = _reader(model, connection.vendor)
    return model.from_db(DEFAULT_DB_ALIAS, names, list(convert(found)))


@lru_cache
def _select(
    model: type[models.Model], where: tuple[str, ...], vendor: str, *, lock: bool
) -> tuple[str, tuple[Prepare, ...]]:
    columns = ", ".join(quoted(field.column) for field in model._meta.concrete_fields)
    # SQLite locks the whole database when a transaction begins.
    now, locked = "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')", ""
    if vendor == "postgresql":
        now, locked = "CLOCK_TIMESTAMP()", " FOR NO KEY UPDATE"
    if lock:
        columns = f"{columns}, {now}"
    table = quoted(model._meta.db_table)
    sql = f"SELECT {columns} FROM {table} WHERE {_condition(model, where)}"  # noqa: S608  no values
    sql += locked if lock else ""
    return sql, tuple(_prepare(field_of(model, name), vendor) for name in where)


def rows(model: type[M], **where: Any) -> list[M]:
    """The rows with these values."""
    sql, prepares = _select(model, tuple(where), connection.vendor, lock=False)
    given = [prepare(value) for prepare, value in zip(prepares, where.values(), strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        found = cursor.fetchall()
    return [made(model, one) for one in found]


Convert = Callable[[Sequence[Any]], Iterator[Any]]


@lru_cache
def _reader(model: type[models.Model], vendor: str) -> tuple[list[str], Convert]:
    """The names of the columns, and what makes Python values of what the database gives."""
    fields = model._meta.concrete_fields
    columns = [field.get_col(model._meta.db_table) for field in fields]
    converters = [
        [
            *connection.ops.get_db_converters(column),
            *column.get_db_converters(connection),
        ]
        for column in columns
    ]

    def convert(found: Sequence[Any]) -> Iterator[Any]:
        for value, column, steps in zip(found, columns, converters, strict=False):
            made = value
            for step in steps:
                made = step(made, column, connection)
            yield made

    return [field.attname for field in fields], convert


def _condition(model: type[models.Model], where: tuple[str, ...]) -> str:
    return " AND ".join(f"{_column_of(model)(name)} = %s" for name in where)


def field_of(model: type[models.Model], name: str) -> Any:
    """The field of a column; `pk` is the key's."""
    return model._meta.pk if name == "pk" else model._meta.get_field(name)


def _column_of(model: type[models.Model]) -> Callable[[str], str]:
    return lambda name: quoted(field_of(model, name).column)


def columns_of(row: models.Model) -> dict[str, Any]:
    """A row as its columns."""
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def prepare_of(model: type[models.Model], name: str) -> Prepare:
    """What makes the column's value of a Python value."""
    return _prepare(field_of(model, name), connection.vendor)


def quoted(name: str | None) -> str:
    """A name as the database takes it."""
    assert name is not None
    return connection.ops.quote_name(name)
