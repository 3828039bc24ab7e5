"""The index of held runs was about `changed_at`: PostgreSQL wrote each turn's change of a run into
all of the table's indexes, which it need not when no indexed column changes.
"""

from django.db import migrations, models

from obversa_site.migrating import AddIndexBeside


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("runs", "0012_runs_leave_for_the_archive"),
    ]

    operations = [
        AddIndexBeside(
            model_name="run",
            index=models.Index(
                condition=models.Q(
                    ("ended_at__isnull", True), models.Q(("held_reason", ""), _negated=True)
                ),
                fields=["created_at"],
                name="run_on_hold",
            ),
        ),
        migrations.RemoveIndex(model_name="run", name="run_held"),
    ]
