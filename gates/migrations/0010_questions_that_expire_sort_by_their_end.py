from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import F


def sort_by_their_end(apps: Any, _schema_editor: Any) -> None:
    """What the projection writes from now on, for the rows that are there."""
    requests = apps.get_model("gates", "Request").objects
    requests.filter(due_at=None, expires_at__isnull=False).update(due_order=F("expires_at"))


class Migration(migrations.Migration):
    dependencies = [("gates", "0009_open_questions_of_several_people")]

    operations = [
        migrations.AlterField(
            model_name="request",
            name="due_order",
            field=models.DateTimeField(help_text="due_at, expires_at, or the end of time"),
        ),
        migrations.RunPython(sort_by_their_end, migrations.RunPython.noop),
    ]
