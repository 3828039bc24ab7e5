"""A store of objects (S3 and what speaks like it), through django-storages."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError
from django.core.files.base import File
from django.utils import timezone
from storages.backends.s3 import S3Storage

_KEY: Final = re.compile(r"(?:.*/)?[0-9a-f]{2}/[0-9a-f]{62}", re.DOTALL)


class ObjectStore(S3Storage):
    """Reads objects as they come; the package would fetch a whole one before its first byte."""

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        key = self._normalize_name(name)
        try:
            found = self.bucket.Object(key).get()
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                raise FileNotFoundError(name) from error
            raise
        return File(found["Body"], name)

    def get_modified_time(self, name: str) -> Any:
        try:
            return super().get_modified_time(name)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                raise FileNotFoundError(name) from error
            raise

    def give_up_uploads(self, older_than_seconds: float) -> int:
        """Abort uploads that were begun so long ago and never finished; returns how many."""
        client, before = self.connection.meta.client, timezone.now()
        before -= timedelta(seconds=older_than_seconds)
        pages = client.get_paginator("list_multipart_uploads").paginate(
            Bucket=self.bucket_name, Prefix=self.location
        )
        old = [
            upload
            for page in pages
            for upload in page.get("Uploads", ())
            # The bucket may hold more than what is ours.
            if upload["Initiated"] < before and _KEY.fullmatch(upload["Key"])
        ]
        for upload in old:
            client.abort_multipart_upload(
                Bucket=self.bucket_name, Key=upload["Key"], UploadId=upload["UploadId"]
            )
        return len(old)
