from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_workflow_starters")]

    operations = [
        migrations.AlterField(
            model_name="attempt",
            name="task",
            field=models.CharField(default="job", max_length=10),
        ),
    ]
