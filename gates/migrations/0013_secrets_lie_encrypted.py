"""Room for secrets and addresses of channels and routers as gates/hidden.py writes them.

Rows stay as they are: this version reads both forms, and `manage.py hide_secrets` (or `up`) encrypts
them once no process of the version before is left, which would sign with what it cannot read.
"""

from django.db import migrations

import gates.hidden
import gates.routers.tables
import gates.signing


class Migration(migrations.Migration):
    dependencies = [
        ("gates", "0012_questions_leave_with_their_run"),
    ]

    operations = [
        migrations.AlterField(
            model_name="channel",
            name="address",
            field=gates.hidden.HiddenText(blank=True),
        ),
        migrations.AlterField(
            model_name="channel",
            name="secret",
            field=gates.hidden.HiddenLine(blank=True, max_length=1200),
        ),
        migrations.AlterField(
            model_name="router",
            name="secret",
            field=gates.hidden.HiddenLine(
                default=gates.signing.new_secret,
                help_text="Signs what is posted; the service checks it.",
                max_length=1200,
                validators=[gates.routers.tables.need_secret],
            ),
        ),
    ]
