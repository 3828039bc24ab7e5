from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import runs.fields


class Migration(migrations.Migration):
    dependencies = [
        ("gates", "0004_channels_and_deliveries"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("place", models.CharField(max_length=40)),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=2000)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["name"]},
        ),
        migrations.AddConstraint(
            model_name="savedfilter",
            constraint=models.UniqueConstraint(
                fields=("user", "place", "name"), name="saved_filter_name_once_per_list"
            ),
        ),
        migrations.AddField(
            model_name="team",
            name="calendar",
            field=runs.fields.JSONText(
                blank=True,
                editable=False,
                help_text="its working time (runs/kernel/worktime.py), where it has said so",
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                condition=models.Q(("status__in", ["pending", "claimed"])),
                fields=["audience", "created_at"],
                name="request_oldest_open",
            ),
        ),
    ]
