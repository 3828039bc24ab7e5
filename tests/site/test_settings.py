from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, override_settings

from obversa_site.databases import POSTGRESQL, SQLITE, database
from obversa_site.home import ready_home, secret_key

ROOT = Path(__file__).resolve().parents[2]


def settings_under(home: Path, **environment: str) -> dict[str, Any]:
    """Read the product's settings in a process of their own."""
    code = (
        "import json\n"
        "from obversa_site import settings\n"
        "found = {name: value for name, value in vars(settings).items() if name.isupper()}\n"
        "print(json.dumps(found, default=str))\n"
    )
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OBVERSA_", "DATABASE_", "CELERY_", "CHANNEL_", "EMAIL_"))
    }
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=clean | {"OBVERSA_HOME": str(home)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_with_nothing_set_it_is_one_process_on_one_sqlite_file(tmp_path: Path) -> None:
    found = settings_under(tmp_path)

    assert found["DEBUG"] is False
    assert found["DATABASES"]["default"]["ENGINE"] == SQLITE
    assert found["DATABASES"]["default"]["NAME"] == str(tmp_path / "obversa.sqlite3")
    assert found["DATABASES"]["default"]["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert found["CELERY_BROKER_URL"] is None
    assert "CHANNEL_LAYERS" not in found
    assert found["ALLOWED_HOSTS"] == ["127.0.0.1", "[::1]", "localhost"]
    assert "SECURE_SSL_REDIRECT" not in found


def test_the_environment_alone_scales_it_out(tmp_path: Path) -> None:
    found = settings_under(
        tmp_path,
        DATABASE_URL="postgres://ada:secret@db.example.com:5433/obversa?sslmode=require",
        CELERY_BROKER_URL="redis://redis.example.com/1",
        CHANNEL_REDIS_URL="redis://redis.example.com/2",
        OBVERSA_SECRET_KEY="given",
        EMAIL_URL="smtp+tls://ada:secret@mail.example.com:587",
        OBVERSA_WORKFLOWS="house.releases,house.reviews",
    )

    default = found["DATABASES"]["default"]
    assert (default["ENGINE"], default["HOST"], default["PORT"]) == (
        POSTGRESQL,
        "db.example.com",
        5433,
    )
    assert default["OPTIONS"] == {
        "sslmode": "require",
        "pool": {"min_size": 2, "max_size": 8},
        "prepare_threshold": 3,
        "server_side_binding": True,
    }
    assert default["CONN_MAX_AGE"] == 0
    assert found["CELERY_BROKER_TRANSPORT_OPTIONS"] == {"visibility_timeout": 3600}
    hosts = found["CHANNEL_LAYERS"]["default"]["CONFIG"]["hosts"]
    assert hosts == [{"address": "redis://redis.example.com/2", "socket_timeout": None}]
    assert found["SECRET_KEY"] == "given"
    assert not (tmp_path / "secret.key").exists()
    assert (found["EMAIL_HOST"], found["EMAIL_USE_TLS"]) == ("mail.example.com", True)
    assert found["OBVERSA_WORKFLOWS"] == ["house.releases", "house.reviews"]


def test_an_https_address_turns_on_what_protects_it(tmp_path: Path) -> None:
    found = settings_under(tmp_path, OBVERSA_BASE_URL="https://obversa.example.com/")

    assert found["OBVERSA_BASE_URL"] == "https://obversa.example.com"
    assert found["SESSION_COOKIE_SECURE"] is found["CSRF_COOKIE_SECURE"] is True
    assert found["SECURE_SSL_REDIRECT"] is True
    assert found["SECURE_HSTS_SECONDS"] > 0
    assert found["CSRF_TRUSTED_ORIGINS"] == ["https://obversa.example.com"]
    assert "obversa.example.com" in found["ALLOWED_HOSTS"]


def test_an_unknown_database_is_refused_with_the_two_that_work(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"sqlite:///PATH or postgres://"):
        database("mysql://ada@127.0.0.1/obversa", tmp_path)


def test_the_secret_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    home = ready_home(tmp_path / "new")

    first = secret_key(home)

    assert len(first) >= 50
    assert secret_key(home) == first
    assert stat.S_IMODE((home / "secret.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_processes_that_start_together_agree_on_one_secret_key(tmp_path: Path) -> None:
    home = ready_home(tmp_path)
    together = Barrier(8)
    keys: list[str] = []

    def start() -> None:
        together.wait()
        keys.append(secret_key(home))

    threads = [Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(keys) == 8
    assert len(set(keys)) == 1
    assert [path.name for path in home.iterdir() if path.is_file()] == ["secret.key"]


def test_every_response_says_what_a_page_may_load(client: Client) -> None:
    response = client.get("/healthz")

    policy = response.headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "same-origin"
    assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "camera=()" in response.headers["Permissions-Policy"]


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=2 * 1024 * 1024)
@pytest.mark.parametrize(
    ("path", "kind"), [("/sign-in/", "text/html"), ("/api/v1/requests", "application/json")]
)
def test_a_body_over_two_mebibytes_is_too_large_everywhere(
    client: Client, path: str, kind: str
) -> None:
    body = b"x" * (2 * 1024 * 1024 + 1)

    response = client.post(path, data=body, content_type="application/json")

    assert response.status_code == 413
    assert response.headers["Content-Type"].startswith(kind)
    if kind == "application/json":
        assert response.json()["error"]["code"] == "too-large"


def test_static_files_are_served_without_being_collected(client: Client) -> None:
    response = client.get("/static/admin/css/base.css")

    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/css")
    assert not response.streaming
    assert b"{" in response.content
