from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0007_a_step_that_waits_for_its_next_try"),
    ]

    operations = [
        migrations.AddField(
            model_name="event",
            name="hash",
            field=models.CharField(max_length=64, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="head",
            field=models.CharField(
                blank=True, help_text="the hash of the last event", max_length=64
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="seal",
            field=models.CharField(
                blank=True, help_text="of the head, with our key", max_length=64
            ),
        ),
    ]
