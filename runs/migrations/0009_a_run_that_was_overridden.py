from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0008_events_are_a_chain"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="overridden",
            field=models.BooleanField(
                default=False, help_text="a question was answered by somebody who was not asked"
            ),
        ),
    ]
