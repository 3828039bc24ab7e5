from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("gates", "0008_routers")]

    operations = [
        migrations.AddIndex(
            model_name="request",
            index=models.Index(
                condition=models.Q(("needed__gt", 1), ("status__in", ["pending", "claimed"])),
                fields=["id"],
                name="request_open_for_several",
            ),
        ),
    ]
