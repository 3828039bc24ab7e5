import uuid

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import gates.routers.tables
import gates.signing


class Migration(migrations.Migration):
    dependencies = [
        ("gates", "0007_grants"),
        ("runs", "0009_a_run_that_was_overridden"),
    ]

    operations = [
        migrations.CreateModel(
            name="Router",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=100, unique=True, validators=[gates.routers.tables.need_name]
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        help_text="Questions are posted to it. Whoever sets it makes this server call it.",
                        max_length=2000,
                        validators=[gates.routers.tables.need_address],
                        verbose_name="URL",
                    ),
                ),
                (
                    "secret",
                    models.CharField(
                        default=gates.signing.new_secret,
                        help_text="Signs what is posted; the service checks it.",
                        max_length=200,
                        validators=[gates.routers.tables.need_secret],
                    ),
                ),
                (
                    "timeout_seconds",
                    models.PositiveIntegerField(
                        default=10,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(60),
                        ],
                    ),
                ),
                (
                    "sees_sensitive",
                    models.BooleanField(
                        default=False,
                        help_text="Whether it gets what a question declares sensitive.",
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
            ],
        ),
        migrations.AddField(
            model_name="apikey",
            name="router",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="api_keys",
                to="gates.router",
            ),
        ),
        migrations.CreateModel(
            name="RouterCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("request_id", models.CharField(max_length=600)),
                (
                    "seq",
                    models.PositiveBigIntegerField(
                        help_text="The event that put the question to it."
                    ),
                ),
                ("router", models.CharField(max_length=100)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("sending", "Sending"),
                            ("waiting", "Waiting"),
                            ("answered", "Answered"),
                            ("failed", "Failed"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                ("lease_until", models.DateTimeField(null=True)),
                ("done_at", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="router_calls",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["next_at"],
                        name="router_call_due",
                    ),
                    models.Index(
                        condition=models.Q(("state", "sending")),
                        fields=["lease_until"],
                        name="router_call_leased",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "seq"), name="router_call_once_per_event"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "sending"), _negated=True),
                            ("lease_until__isnull", False),
                            _connector="OR",
                        ),
                        name="router_call_is_sent_under_a_lease",
                    ),
                ],
            },
        ),
    ]
