"""A row of a question is a copy; its digest says whether it is still a true one."""

from __future__ import annotations

from gates.models import Request
from runs.kernel.gate import callback_request_digest


class RowChanged(ValueError):
    """The row is not what its digest was made of: somebody changed it in the database."""


def need_unchanged(row: Request) -> None:
    """Raise RowChanged for an edited row; nobody decides about a text that was never asked."""
    if was_narrowed(row):
        return  # its columns cannot give the digest, and readers get the record's own text
    try:
        digest = callback_request_digest(
            gate_id=row.gate_id,
            gate_version=row.gate_version,
            decision_text=row.decision_text,
            response_schema=row.response_schema,
            input=row.input,
        )
    except ValueError as error:
        raise RowChanged(f"The row of question {row.pk} makes no question: {error}") from error
    if digest != row.digest:
        raise RowChanged(
            f"The row of question {row.pk} was changed after it was asked: it does not give its "
            "digest. `manage.py rebuild` makes it anew from the record."
        )


def was_narrowed(row: Request) -> bool:
    """Whether a column may hold less than the record: see gates/columns.py."""
    is_cut = row.request_id != f"{row.gate_id}#{row.gate_version}#{row.digest}"
    return is_cut or "\ufffd" in row.gate_id + row.decision_text
