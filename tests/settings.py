"""The product's own settings on a database that is made for this run of the tests."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from tests.needs import find

DATABASE = os.environ.get("OBVERSA_TEST_DATABASE", "sqlite")

# The first process of a run makes the home and the name; its xdist workers inherit both, and two
# runs on one machine do not meet.
if "OBVERSA_TEST_RUN" not in os.environ:
    os.environ["OBVERSA_TEST_RUN"] = str(os.getpid())
    os.environ["OBVERSA_HOME"] = tempfile.mkdtemp(prefix="obversa-test-")
    atexit.register(shutil.rmtree, os.environ["OBVERSA_HOME"], ignore_errors=True)

for _name in ("CELERY_BROKER_URL", "CHANNEL_REDIS_URL", "OBVERSA_BASE_URL"):
    os.environ.pop(_name, None)
os.environ["DATABASE_URL"] = find("postgres").address if DATABASE == "postgres" else ""
os.environ["EMAIL_URL"] = "memorymail://"
os.environ["OBVERSA_SECRET_KEY"] = "a key for tests, long enough that nobody calls it short"

from obversa_site.settings import *  # noqa: E402, F403
from obversa_site.settings import DATABASES, OBVERSA_HOME  # noqa: E402

_run = os.environ["OBVERSA_TEST_RUN"]
if DATABASE == "postgres":
    # No power cut is survived here, and each commit would wait for the disk.
    DATABASES["default"]["OPTIONS"]["options"] = "-c synchronous_commit=off"
    # A race of many threads holds one connection each and would wait for the pool behind itself.
    # They are given up soon, or the pools of all processes come to more than a server has.
    DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 40, "max_idle": 0.2}
    DATABASES["default"]["TEST"] = {"NAME": f"test_obversa_{_run}"}
else:
    # A file, so that threads of one test meet in the same database.
    DATABASES["default"]["TEST"] = {"NAME": str(OBVERSA_HOME / "test.sqlite3")}
    _options = DATABASES["default"]["OPTIONS"]
    _options["init_command"] = _options["init_command"].replace(
        "synchronous=FULL", "synchronous=OFF"
    )

# A test calls as often as it likes, but for those about that.
OBVERSA_API_RATE = OBVERSA_API_COSTLY_RATE = "0"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
