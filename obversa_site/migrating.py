"""What a migration may do while the version before still runs (CONTRIBUTING.md, Migrations)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.db.migrations import Migration, operations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

# Tables that hold millions of rows: an index that is made in one go keeps writers out of them.
BIG: Final = frozenset(
    {
        *(("runs", name) for name in ("run", "event", "step", "attempt", "artifact")),
        *(("gates", name) for name in ("request", "response", "delivery")),
    }
)
_GONE: Final = (
    operations.DeleteModel,
    operations.RemoveField,
    operations.RenameField,
    operations.RenameModel,
    operations.AlterModelTable,
)
_SAID: Final = (
    operations.RunPython,
    operations.RunSQL,
    operations.AddConstraint,
    operations.SeparateDatabaseAndState,
)


class AddIndexBeside(operations.AddIndex):
    """An index that is made while others write: CONCURRENTLY where the database is PostgreSQL.

    Its migration says `atomic = False`.
    """

    atomic = False

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.add_index(model, self.index, concurrently=True)
        else:
            schema_editor.add_index(model, self.index)


def faults(migration: Migration, before: ProjectState) -> Iterator[str]:
    """What the version before would not survive, or would have to wait for, in words.

    A migration answers for what cannot be read off an operation by `beside = "why it is safe"`.
    """
    state = before.clone()
    says = bool(getattr(migration, "beside", ""))
    for operation in migration.operations:
        found = _fault(operation, migration, state)
        if found and not (says and isinstance(operation, (*_SAID, operations.AddIndex))):
            yield f"{migration.app_label}.{migration.name}: {operation.describe()}: {found}"
        operation.state_forwards(migration.app_label, state)


def _fault(operation: Operation, migration: Migration, state: ProjectState) -> str:
    if isinstance(operation, _GONE):
        return "the version before still uses that name"
    if isinstance(operation, operations.AddField):
        return _unfilled(operation.field)
    if isinstance(operation, operations.AlterField):
        model = state.models[migration.app_label, operation.model_name_lower]
        return _narrowed(model.get_field(operation.name), operation.field)
    if isinstance(operation, AddIndexBeside):
        return "" if migration.atomic is False else "its migration has to say atomic = False"
    if isinstance(operation, operations.AddIndex):
        big = (migration.app_label, operation.model_name_lower) in BIG
        return "writers wait for it: use AddIndexBeside" if big else ""
    if isinstance(operation, _SAID):
        return "say by `beside` why the version before goes on"
    return ""


def _unfilled(field: Any) -> str:
    if field.null or field.many_to_many or field.has_db_default():
        return ""
    return "rows of the version before have no value for it: null=True or db_default"


def _narrowed(old: Any, new: Any) -> str:
    if old.null and not new.null:
        return "the version before may write NULL"
    if new.unique and not old.unique:
        return "the version before may write it twice"
    if old.get_internal_type() != new.get_internal_type():
        return "the version before writes another type"
    if (new.max_length or 0) < (old.max_length or 0):
        return "the version before may write longer texts"
    return ""
