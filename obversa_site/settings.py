"""Every setting, read from the environment; with nothing set, one process on one SQLite file."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext
import environ
from kombu import Queue

from obversa_site.bells import bell
from obversa_site.databases import database
from obversa_site.home import ready_home, secret_key
from obversa_site.logs import logging_config
from obversa_site.stores import store

django_stubs_ext.monkeypatch()  # lets classes say what they hold: ModelAdmin[Run]

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent

# What this installation is

OBVERSA_HOME = ready_home(Path(env.str("OBVERSA_HOME", default=".obversa")))
OBVERSA_BASE_URL: str = env.str("OBVERSA_BASE_URL", default="http://127.0.0.1:8000").rstrip("/")
OBVERSA_BASE_URL_GIVEN = "OBVERSA_BASE_URL" in env
OBVERSA_WORKFLOWS: list[str] = env.list("OBVERSA_WORKFLOWS", default=[])
# The dotted path of a mapping of engines by name, and which of them steps use by default.
OBVERSA_ENGINES: str = env.str("OBVERSA_ENGINES", default="")
OBVERSA_ENGINE: str = env.str("OBVERSA_ENGINE", default="")
OBVERSA_WORKFLOWS_DIR: str = env.str("OBVERSA_WORKFLOWS_DIR", default="")
# How long a web process that is told to stop goes on, unready, before it takes no more requests.
OBVERSA_DRAIN_SECONDS: float = env.float("OBVERSA_DRAIN_SECONDS", default=1.0)
OBVERSA_LEASE_SECONDS: float = env.float("OBVERSA_LEASE_SECONDS", default=30.0)
# How much one caller may have open at a time; 0 is no limit.
OBVERSA_MAX_OPEN_QUESTIONS: int = env.int("OBVERSA_MAX_OPEN_QUESTIONS", default=10_000)
OBVERSA_MAX_OPEN_RUNS: int = env.int("OBVERSA_MAX_OPEN_RUNS", default=10_000)
# How often one caller may call the API, in all and what costs more; 0 is no limit (docs/queues.md).
OBVERSA_API_RATE: str = env.str("OBVERSA_API_RATE", default="3000/min burst 600")
OBVERSA_API_COSTLY_RATE: str = env.str("OBVERSA_API_COSTLY_RATE", default="600/min burst 200")
# About how many steps lie with the broker at most; 0 is no limit (docs/queues.md).
OBVERSA_HANDED_OUT: int = env.int("OBVERSA_HANDED_OUT", default=128)
# How many bytes steps may keep in files (see docs/artifacts.md); 0 is no limit.
OBVERSA_MAX_FILE_BYTES: int = env.int("OBVERSA_MAX_FILE_BYTES", default=2 * 1024**3)
OBVERSA_MAX_FILE_BYTES_PER_STEP: int = env.int("OBVERSA_MAX_FILE_BYTES_PER_STEP", default=0)
OBVERSA_MAX_FILE_BYTES_PER_RUN: int = env.int(
    "OBVERSA_MAX_FILE_BYTES_PER_RUN", default=20 * 1024**3
)
OBVERSA_MAX_FILE_BYTES_IN_ALL: int = env.int("OBVERSA_MAX_FILE_BYTES_IN_ALL", default=0)
# When what is over leaves the database (see docs/retention.md); 0 is never.
OBVERSA_ARCHIVE_AFTER_DAYS: int = env.int("OBVERSA_ARCHIVE_AFTER_DAYS", default=0)
OBVERSA_KEEP_DELIVERIES_DAYS: int = env.int("OBVERSA_KEEP_DELIVERIES_DAYS", default=90)
# Whether messages may go to private addresses, and services beside those with fixed hosts.
OBVERSA_NOTIFY_PRIVATE: bool = env.bool("OBVERSA_NOTIFY_PRIVATE", default=False)
OBVERSA_NOTIFY_SCHEMES: list[str] = env.list("OBVERSA_NOTIFY_SCHEMES", default=[])
# Where a yes may hold for ever: pairs such as publish:low or *:low (see docs/approvals.md).
OBVERSA_STANDING_GRANTS: list[str] = env.list("OBVERSA_STANDING_GRANTS", default=[])
_address = urlsplit(OBVERSA_BASE_URL)

DEBUG: bool = env.bool("OBVERSA_DEBUG", default=False)
SECRET_KEY: str = env.str("OBVERSA_SECRET_KEY", default="") or secret_key(OBVERSA_HOME)
# Keys of before: what was made or hidden with them still holds.
SECRET_KEY_FALLBACKS: list[str] = env.list("OBVERSA_SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS: list[str] = env.list(
    "OBVERSA_ALLOWED_HOSTS",
    default=sorted({"localhost", "127.0.0.1", "[::1]", _address.hostname or "localhost"}),
)

# What it is made of

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "ninja",
    "runs",
    "gates",
    "obversa_site",
]
MIDDLEWARE = [
    "obversa_site.around.with_request_id",
    "obversa_site.telemetry.span_of_request",
    "django.middleware.security.SecurityMiddleware",
    "obversa_site.middleware.page_policy",
    "obversa_site.static.StaticFiles",
    "obversa_site.middleware.Smaller",
    "obversa_site.middleware.body_limit",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "obversa_site.middleware.Refusals",
]
CSRF_FAILURE_VIEW = "obversa_site.errors.no_csrf"
ROOT_URLCONF = "obversa_site.urls"
ASGI_APPLICATION = "obversa_site.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "gates.pages.shell.inbox",
                "obversa_site.operations.shell.place",
            ]
        },
    }
]

# Where it keeps things

DATABASES: dict[str, dict[str, Any]] = {
    "default": database(env.str("DATABASE_URL", default=""), OBVERSA_HOME)
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

STATIC_URL = "/static/"
STATIC_ROOT = OBVERSA_HOME / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "obversa_site.static.Files"},
    "artifacts": store(
        "OBVERSA_ARTIFACTS_URL", env.str("OBVERSA_ARTIFACTS_URL", default=""), OBVERSA_HOME
    ),
}
if _archive := env.str("OBVERSA_ARCHIVE_URL", default=""):
    STORAGES["archive"] = store("OBVERSA_ARCHIVE_URL", _archive, OBVERSA_HOME)
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False

# How work and news travel. Without a broker the embedded dispatcher carries the work, without
# Redis an in-process hub carries the news.

CELERY_BROKER_URL: str | None = env.str("CELERY_BROKER_URL", default="") or None
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 10
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
if (CELERY_BROKER_URL or "").startswith("redis"):
    # Longer than the longest step: Redis hands a message out again when this time is over.
    CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 3600}
# Deciding takes milliseconds and must not stand behind steps that take an hour. A worker that is
# not told which queues are its own takes from all of them.
CELERY_TASK_QUEUES = [Queue(name) for name in ("control", "steps", "notify")]
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_TASK_ROUTES = {
    "runs.execute": {"queue": "steps"},
    "gates.notify": {"queue": "notify"},
    "gates.route": {"queue": "notify"},
}
CELERY_BEAT_SCHEDULE = {"sweep": {"task": "runs.sweep", "schedule": 5.0}}
CELERY_BEAT_SCHEDULE_FILENAME = str(OBVERSA_HOME / "celerybeat-schedule")
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

# Processes count together there how often each caller calls; without it each counts for itself.
OBVERSA_RATE_REDIS_URL: str = env.str("CHANNEL_REDIS_URL", default="")
if _channel_redis := env.str("CHANNEL_REDIS_URL", default=""):
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            # The client's own timeout of five seconds would close every quiet socket.
            "CONFIG": {"hosts": [{"address": _channel_redis, "socket_timeout": None}]},
        }
    }

OBVERSA_BELL: str = bell(
    env.str("OBVERSA_BELL", default=""),
    redis=_channel_redis,
    broker=CELERY_BROKER_URL,
    engine=DATABASES["default"]["ENGINE"],
)

vars().update(env.email_url("EMAIL_URL", default="consolemail://"))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = f"Obversa <obversa@{_address.hostname or 'localhost'}>"

# Wrong passwords are counted here; room for so many names that none is pushed out.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}
if OBVERSA_RATE_REDIS_URL:
    # Where several web processes count together.
    CACHES["shared"] = {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": OBVERSA_RATE_REDIS_URL,
        "KEY_PREFIX": "obversa",
        "OPTIONS": {
            "serializer": "obversa_site.throttle.Numbers",
            "socket_timeout": 0.25,
            "socket_connect_timeout": 0.25,
        },
    }

# Who may come in

AUTHENTICATION_BACKENDS = ["obversa_site.throttle.PatientBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "sign-in"
PASSWORD_RESET_TIMEOUT = 60 * 60  # how long a sign-in link lives

# How it is guarded on the way

X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
CSRF_TRUSTED_ORIGINS = [f"{_address.scheme}://{_address.netloc}"]
if _address.scheme == "https":
    # Something in front ends TLS. It must set this header itself and drop a client's.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
    SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
# Subdomains and browsers' preload lists are for the owner of the domain to decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

# How it speaks

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
LOGGING = logging_config(env.str("OBVERSA_LOG", default="text"))
