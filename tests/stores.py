"""The stores of files in tests: where bytes lie, and the storages that may be behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage
from django.test import override_settings

from obversa_site.stores import store as described
from runs.artifacts import store

MEMORY = {"BACKEND": "django.core.files.storage.InMemoryStorage"}


def place(digest: str) -> Path:
    """Where the bytes of a digest lie on the file system."""
    storage = store.of()
    assert isinstance(storage, FileSystemStorage)
    return Path(storage.path(store.name_of(digest)))


def prefix_of() -> str:
    """Under what the objects of the store lie in their bucket."""
    return str(getattr(store.of(), "location", ""))


def spoil(digest: str, content: bytes, alias: str = store.ARTIFACTS) -> None:
    """Put other bytes under a digest, past everything that would refuse it."""
    storage = store.of(alias)
    storage.delete(store.name_of(digest))
    storage.save(store.name_of(digest), ContentFile(content))


@contextmanager
def using(kind: str, folder: Path, **more: dict[str, Any]) -> Iterator[None]:
    """Keep files in a folder of their own, in memory, or in objects over HTTP."""
    if kind == "objects":
        behind = objects(folder.name.lower().replace("_", "-"))
    else:
        behind = MEMORY if kind == "memory" else described("TEST", f"file://{folder}/kept", folder)
    with override_settings(STORAGES={**settings.STORAGES, "artifacts": behind, **more}):
        yield


def objects(prefix: str = "") -> dict[str, Any]:
    """A bucket behind a server that speaks S3, on this machine."""
    url = f"s3://obversa-test/{prefix}?endpoint_url={_server()}&region_name=us-east-1"
    return described("TEST", url, Path())


@cache
def _server() -> str:
    """Start the server once per process; it ends with it."""
    import os

    from moto.server import ThreadedMotoServer

    os.environ.setdefault("AWS_ACCESS_KEY_ID", "nobody")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "of-a-server-on-this-machine")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client(f"http://{host}:{port}").create_bucket(Bucket="obversa-test")
    return f"http://{host}:{port}"


def client(address: str = "") -> Any:
    """A client of the server, past the product."""
    import boto3

    return boto3.client("s3", endpoint_url=address or _server(), region_name="us-east-1")
