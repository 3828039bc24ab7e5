from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.state import StateApps


def say_how_it_ended(apps: StateApps, schema_editor: object) -> None:
    """Questions of before had an answer, or their time was over."""
    requests = apps.get_model("gates", "Request").objects
    requests.filter(status="answered").update(how="answered")
    requests.filter(status="expired").update(how="timed_out")


class Migration(migrations.Migration):
    dependencies = [
        ("gates", "0005_saved_filters_and_working_time"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Deputy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("until", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "deputies",
            },
        ),
        migrations.AlterModelOptions(
            name="request",
            options={
                "permissions": [
                    ("view_sensitive", "Can read what questions declare sensitive"),
                    ("break_glass", "Can answer in an emergency what others were asked"),
                ]
            },
        ),
        migrations.RemoveConstraint(
            model_name="response",
            name="response_once_per_actor",
        ),
        migrations.AddField(
            model_name="request",
            name="how",
            field=models.CharField(
                blank=True,
                choices=[
                    ("answered", "Answered"),
                    ("timed_out", "Timed Out"),
                    ("overridden", "Overridden"),
                ],
                max_length=10,
            ),
        ),
        migrations.RunPython(say_how_it_ended, migrations.RunPython.noop),
        migrations.AddField(
            model_name="response",
            name="deputy_for",
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AddField(
            model_name="response",
            name="overrides",
            field=models.BooleanField(default=False),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.UniqueConstraint(
                condition=models.Q(("overrides", False)),
                fields=("request", "actor"),
                name="response_once_per_actor",
            ),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.UniqueConstraint(
                condition=models.Q(("overrides", True)),
                fields=("request",),
                name="response_overrides_once",
            ),
        ),
        migrations.AddField(
            model_name="deputy",
            name="deputy",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deputy_for",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="deputy",
            name="person",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="named_deputy",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="deputy",
            constraint=models.CheckConstraint(
                condition=models.Q(("person", models.F("deputy")), _negated=True),
                name="deputy_is_somebody_else",
            ),
        ),
    ]
