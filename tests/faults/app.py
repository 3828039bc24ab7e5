"""The product's Celery app in a corner of the broker, for every process of the fault suite.

`celery -A tests.faults.app worker`. What becomes of a message that this process sends is what
`mode` of the scene says at that moment.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import django

# Models can be imported only after this.
django.setup()

from celery.signals import task_postrun, task_received  # noqa: E402

from obversa_site.celery import app  # noqa: E402
from runs import tasks  # noqa: E402
from tests.faults import scene, turns  # noqa: E402

__all__ = ["app"]

LATE_SECONDS = 2.0
corner = os.environ["OBVERSA_TEST_CORNER"]
# The names of the product's queues are everybody's at one RabbitMQ: whoever tests beside this one
# would take its messages, and the other way round.
app.conf.task_default_queue = corner
app.conf.task_queues = None
app.conf.task_routes = {}
app.conf.worker_enable_remote_control = False
if os.environ["CELERY_BROKER_URL"].startswith("redis"):
    app.conf.broker_transport_options = {
        "global_keyprefix": f"{corner}-",
        "visibility_timeout": float(os.environ["OBVERSA_TEST_VISIBILITY"]),
        "polling_interval": 0.05,
    }


@task_received.connect
def note_redelivery(request: Any = None, **_: Any) -> None:
    """The broker says of a message that it has given it out before."""
    if (request.delivery_info or {}).get("redelivered"):
        scene.note("redelivered", f"{request.name} {list(request.args)}")
        scene.note("faults", "redelivered")


@task_postrun.connect
def note_done(task: Any = None, args: Any = (), **_: Any) -> None:
    """A message was dealt with."""
    scene.note("dealt-with", f"{task.name} {list(args)}")


def _through_fate(task: Any) -> None:
    publish = task.apply_async

    def apply_async(args: tuple[Any, ...], **options: Any) -> None:
        # A start is sent under its own number; a wake-up has none, and time brings the next.
        is_start = task.name == "runs.execute"
        match scene.said("mode"):
            case "twice":
                scene.note("faults", "doubled")
                publish(args, **options)
            case "late":
                # Once in time, and once when everything has gone on without it.
                scene.note("faults", "late")
                publish(args, **options | {"countdown": LATE_SECONDS})
            case "held up" if is_start:
                scene.note("faults", "held up")
                publish(args, **options | {"countdown": LATE_SECONDS})
                return
            case "lost" if not is_start or scene.is_first(f"lost-{args[0]}"):
                scene.note("faults", "lost")
                return
            case "dies" if is_start and "OBVERSA_TEST_MORTAL" in os.environ:
                if scene.is_first(f"died-{args[0]}"):
                    scene.note("faults", "died")
                    os.kill(os.getpid(), signal.SIGKILL)
        publish(args, **options)

    task.apply_async = apply_async


for _task in (tasks.execute, tasks.advance):
    # The task itself: what a module holds is a stand-in that looks it up anew.
    _through_fate(app.tasks[_task.name])

if "OBVERSA_TEST_MORTAL" in os.environ:
    turns.befall()
