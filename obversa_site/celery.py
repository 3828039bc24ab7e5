from __future__ import annotations

import os
import sys

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "obversa_site.settings")

app = Celery("obversa")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Celery would close the pool of connections before and after every task and lose with it what the
# database has prepared; the tasks give their connection back themselves (runs/tasks.py).
app.add_defaults(lambda: {"CELERY_DB_REUSE_MAX": sys.maxsize})
app.autodiscover_tasks()
