"""The product's own settings, with a queue that no other worker on this machine listens to."""

from __future__ import annotations

import os

from obversa_site.settings import *  # noqa: F403

CELERY_TASK_DEFAULT_QUEUE = os.environ["OBVERSA_BENCH_QUEUE"]
