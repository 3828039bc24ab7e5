"""Where the files of runs lie: a folder, or a store of objects."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit
from urllib.request import url2pathname

from django.core.exceptions import ImproperlyConfigured

FILES: Final = "django.core.files.storage.FileSystemStorage"
OBJECTS: Final = "runs.artifacts.objects.ObjectStore"
# What an address may say beside bucket and prefix; the rest is the library's own environment.
_OPTIONS: Final = frozenset({"endpoint_url", "region_name", "addressing_style", "session_profile"})


def store(name: str, url: str, home: Path) -> dict[str, Any]:
    """Django's description of the store at an address; none means the folder `artifacts`.

    `name` is the environment's name for it, for the words of a refusal.
    """
    parts = urlsplit(url)
    if not url:
        return _folder(home / "artifacts")
    if parts.scheme == "file" and not parts.netloc and parts.path.strip("/"):
        return _folder(Path(url2pathname(parts.path)))
    if parts.scheme == "s3" and parts.hostname:
        return _objects(name, url)
    raise ImproperlyConfigured(
        f"{name} names no store. Use file:///FOLDER or "
        "s3://BUCKET/PREFIX?endpoint_url=https://HOST&region_name=REGION."
    )


def _folder(path: Path) -> dict[str, Any]:
    options = {
        "location": str(path),
        "allow_overwrite": True,  # equal names are equal bytes
        "file_permissions_mode": 0o600,
        "directory_permissions_mode": 0o700,
    }
    return {"BACKEND": FILES, "OPTIONS": options}


def _objects(name: str, url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    if importlib.util.find_spec("storages") is None or importlib.util.find_spec("boto3") is None:
        raise ImproperlyConfigured(f"{name} names an object store: pip install 'obversa[s3]'.")
    if parts.username or parts.password:
        raise ImproperlyConfigured(
            f"{name} holds a name or password. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if odd := sorted(set(given) - _OPTIONS):
        raise ImproperlyConfigured(
            f"{name} has {odd[0]!r}, which is none of {', '.join(sorted(_OPTIONS))}."
        )
    options = {
        **given,
        "bucket_name": parts.netloc,
        "location": parts.path.strip("/"),
        "file_overwrite": True,
        "default_acl": None,
        "querystring_auth": False,
    }
    return {"BACKEND": OBJECTS, "OPTIONS": options}
