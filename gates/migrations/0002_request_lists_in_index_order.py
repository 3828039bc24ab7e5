from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gates", "0001_initial"),
        ("runs", "0007_a_step_that_waits_for_its_next_try"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="request",
            name="request_inbox",
        ),
        migrations.RemoveIndex(
            model_name="request",
            name="request_by_status",
        ),
        migrations.RemoveIndex(
            model_name="request",
            name="request_history_of_audience",
        ),
        migrations.RemoveIndex(
            model_name="request",
            name="request_history",
        ),
        migrations.RemoveIndex(
            model_name="request",
            name="request_by_asker",
        ),
        migrations.RemoveIndex(
            model_name="request",
            name="request_history_of_asker",
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                fields=["audience", "status", "-priority", "due_order", "created_at", "id"],
                name="request_inbox",
            ),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                fields=["status", "-priority", "due_order", "created_at", "id"],
                name="request_by_status",
            ),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                fields=["audience", "status", "-changed_at", "-id"],
                name="request_history_of_audience",
            ),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(fields=["status", "-changed_at", "-id"], name="request_history"),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                fields=["asked_by", "status", "-priority", "due_order", "created_at", "id"],
                name="request_by_asker",
            ),
        ),
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                fields=["asked_by", "status", "-changed_at", "-id"], name="request_history_of_asker"
            ),
        ),
    ]
