from __future__ import annotations

import os
import sys
from typing import Any

from celery import Celery
from celery.signals import before_task_publish, task_postrun, task_prerun
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "obversa_site.settings")

app = Celery("obversa")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Celery would close the pool of connections before and after every task and lose with it what the
# database has prepared; the tasks give their connection back themselves (runs/tasks.py).
app.add_defaults(lambda: {"CELERY_DB_REUSE_MAX": sys.maxsize})
app.autodiscover_tasks()

# Which fact of the log each task's first argument is.
_ABOUT = {"runs.execute": "attempt", "runs.advance": "run_id"}
_REQUEST = "obversa_request_id"


@before_task_publish.connect
def _take_along(headers: dict[str, Any] | None = None, **_: Any) -> None:
    """Let a worker's lines name the request that led to them."""
    if headers is not None and (known := get_contextvars().get("request_id")):
        headers[_REQUEST] = known


@task_prerun.connect
def _begin(task_id: str = "", task: Any = None, args: Any = (), **_: Any) -> None:
    """Let every line of this task say what it is about, also those of Celery itself."""
    clear_contextvars()
    facts = {"task": task.name, "task_id": task_id}
    if args and task.name in _ABOUT:
        facts[_ABOUT[task.name]] = args[0]
    if known := getattr(task.request, _REQUEST, None):
        facts["request_id"] = known
    bind_contextvars(**facts)


@task_postrun.connect
def _over(**_: Any) -> None:
    clear_contextvars()
