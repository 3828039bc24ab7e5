"""The artifact store of one machine: bytes by digest, and who may read them (graph.md section 8).

The ledger of a run is a row of numbered files, each written once, so that of two writers who
compete for the last of the quota one sees the other's entry before its own is made.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from runs.drivers.errors import StorageError
from runs.drivers.storage import files, values
from runs.drivers.storage.known_secrets import KnownSecrets
from runs.kernel.jsonable import (
    FrozenDict,
    JSONValue,
    JsonValueError,
    canonical_json,
    digest_hex,
    parse_json,
    sha256_bytes,
)

NAME: Final = "local-files"
_REFERENCE: Final = ("schemaVersion", "digest", "byteLength", "mediaType", "purpose")
_ADMISSION: Final = (
    "schemaVersion",
    "revision",
    "limits",
    "policyDigest",
    "reference",
    "checksum",
)
_ENTRY: Final = re.compile(r"(\d{16})\.json\Z")
_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+\Z")
_JSON_TYPE: Final = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json\Z", re.IGNORECASE)
_LARGEST_ENTRY: Final = 4_096
_TRIES: Final = 1_000


class LocalArtifactStore:
    """Artifacts of runs below a folder; several processes may use it at once."""

    def __init__(self, root: Path, limits: values.Limits, secrets: KnownSecrets) -> None:
        self._root = root
        self._limits = limits
        self._secrets = secrets
        self._policy = values.policy_digest(limits.of_artifacts)

    def preflight_write(self, scope: object, artifacts: object) -> list[FrozenDict]:
        """The references that writing these would give; nothing is written (K77)."""
        if not isinstance(artifacts, list | tuple) or not artifacts:
            raise values.refused("there is nothing to write.", "/artifacts")
        names = _names(scope)
        ledger = self._ledger(names)
        made = [self._prepared(artifact)[1] for artifact in artifacts]
        self._refuse_over_quota([*ledger, *made])
        return made

    def write(self, scope: object, artifact: object) -> FrozenDict:
        """Keep the bytes and admit their reference for this run (K79-K82)."""
        names = _names(scope)
        content, reference = self._prepared(artifact)
        for _ in range(_TRIES):
            ledger = self._ledger(names)
            if reference in ledger:
                return reference
            self._refuse_over_quota([*ledger, reference])
            self._keep(names, str(reference["digest"]), content)
            if self._admit(names, len(ledger) + 1, reference):
                return reference
        text = "the artifacts of the run are written too often at once."
        raise StorageError("REVISION_CONFLICT", text)

    def read(self, scope: object, reference: object) -> bytes:
        """The bytes of an admitted reference (K78)."""
        names = _names(scope)
        wanted = checked_reference(reference)
        if wanted not in self._ledger(names):
            text = "this reference was never admitted for this run."
            raise StorageError("ARTIFACT_NOT_ADMITTED", text)
        blobs = files.folder(self._root, *names, "blobs")
        path = (blobs or self._root) / _hex(str(wanted["digest"]))
        try:
            content = files.read(path)
        except FileNotFoundError:
            raise StorageError("ARTIFACT_NOT_FOUND", "the bytes are missing.") from None
        if sha256_bytes(content) != wanted["digest"] or len(content) != wanted["byteLength"]:
            raise StorageError("ARTIFACT_INTEGRITY", "the bytes are not those that were written.")
        return content

    def delete_run(self, scope: object) -> None:
        """Forget the bytes of a run and who could read them; its events keep their references."""
        folder = files.folder(self._root, *_names(scope))
        if folder is not None:
            shutil.rmtree(folder)

    # --- one artifact ----------------------------------------------------------------------------

    def _prepared(self, artifact: object) -> tuple[bytes, FrozenDict]:
        """The bytes as they are stored, and their reference (K74, K75, K81)."""
        content, mode, media_type, purpose = _new_artifact(artifact)
        if mode == "free-text":
            content = self._secrets.redacted(_text(content)).encode()
        decoded = _decoded(content, media_type) if mode == "state" else None
        self._secrets.refuse_in(decoded, content)
        if len(content) > self._limits.max_artifact_bytes:
            raise StorageError("STORAGE_LIMIT_EXCEEDED", "the artifact is too large.")
        reference = FrozenDict(
            {
                "schemaVersion": 1,
                "digest": sha256_bytes(content),
                "byteLength": len(content),
                "mediaType": media_type,
                "purpose": purpose,
            }
        )
        self._secrets.refuse_in(reference)
        return content, reference

    def _refuse_over_quota(self, references: Sequence[FrozenDict]) -> None:
        sizes: dict[JSONValue, Any] = {one["digest"]: one["byteLength"] for one in references}
        if sum(sizes.values()) > self._limits.max_total_artifact_bytes_per_run:
            text = "the artifacts of the run would be too large together."
            raise StorageError("STORAGE_LIMIT_EXCEEDED", text)

    def _keep(self, names: Sequence[str], digest: str, content: bytes) -> None:
        blobs = files.folder(self._root, *names, "blobs", make=True)
        scratch = files.folder(self._root, *names, ".tmp", make=True)
        assert blobs is not None
        assert scratch is not None
        path = blobs / _hex(digest)
        if not files.write_once(path, content, scratch) and files.read(path) != content:
            raise StorageError("ARTIFACT_INTEGRITY", "other bytes stand under this digest.")

    # --- the ledger ------------------------------------------------------------------------------

    def _admit(self, names: Sequence[str], number: int, reference: FrozenDict) -> bool:
        entry: dict[str, JSONValue] = {
            "schemaVersion": 1,
            "revision": number,
            "limits": self._limits.of_artifacts,
            "policyDigest": self._policy,
            "reference": reference,
        }
        entry["checksum"] = f"sha256:{digest_hex(entry)}"
        content = canonical_json(entry).encode()
        self._secrets.refuse_in(entry, content)
        if len(content) > _LARGEST_ENTRY:
            raise StorageError("STORAGE_LIMIT_EXCEEDED", "the reference is too large.")
        folder = files.folder(self._root, *names, "admissions", make=True)
        scratch = files.folder(self._root, *names, ".tmp", make=True)
        assert folder is not None
        assert scratch is not None
        return files.write_once(folder / f"{number:016d}.json", content, scratch)

    def _ledger(self, names: Sequence[str]) -> list[FrozenDict]:
        folder = files.folder(self._root, *names, "admissions")
        if folder is None:
            return []
        return [
            self._entry(path, number)
            for number, path in enumerate(sorted(folder.iterdir()), start=1)
        ]

    def _entry(self, path: Path, number: int) -> FrozenDict:
        name = _ENTRY.match(path.name)
        content = files.read(path)
        if name is None or int(name[1]) != number or len(content) > _LARGEST_ENTRY:
            raise _broken(path)
        try:
            entry = values.exactly(parse_json(content), _ADMISSION, "")
            reference = checked_reference(entry["reference"])
        except (JsonValueError, StorageError) as error:
            raise _broken(path) from error
        summed = {key: value for key, value in entry.items() if key != "checksum"}
        if entry["checksum"] != f"sha256:{digest_hex(summed)}" or entry["revision"] != number:
            raise _broken(path)
        if entry["policyDigest"] != self._policy:
            raise values.refused("the run was begun under other limits.", "/policy")
        return reference


def checked_reference(value: object) -> FrozenDict:
    """A reference with exactly its five fields (graph.md K75)."""
    found = values.exactly(value, _REFERENCE, "/reference")
    digest, length = found["digest"], found["byteLength"]
    if found["schemaVersion"] != 1:
        raise values.refused("the reference is of another version.", "/schemaVersion")
    if not isinstance(digest, str) or not re.match(r"sha256:[0-9a-f]{64}\Z", digest):
        raise values.refused("the digest is none.", "/digest")
    values.revision(length, "/byteLength", least=0)
    _media_type(found["mediaType"])
    _purpose(found["purpose"])
    return found


def _new_artifact(artifact: object) -> tuple[bytes, str, str, str]:
    if not isinstance(artifact, dict):
        raise values.refused("an artifact is an object.", "/artifact")
    odd = set(artifact) - {"bytes", "mediaType", "purpose", "contentMode", "sensitive"}
    content, mode = artifact.get("bytes"), artifact.get("contentMode")
    if odd or not isinstance(content, bytes | bytearray | memoryview):
        raise values.refused("an artifact holds bytes and what they are.", "/artifact")
    if mode not in ("exact", "state", "free-text"):
        raise values.refused("contentMode is exact, state or free-text.", "/contentMode")
    if artifact.get("sensitive", False) is not False:
        raise StorageError("SENSITIVE_CONTENT", "what is marked sensitive is not kept.")
    media_type = _media_type(artifact.get("mediaType"))
    return bytes(content), mode, media_type, _purpose(artifact.get("purpose"))


def _media_type(value: object) -> str:
    if not isinstance(value, str) or not _MEDIA_TYPE.match(value) or len(value) > 255:
        raise values.refused("the media type is none.", "/mediaType")
    return value


def _purpose(value: object) -> str:
    try:
        purpose = value if isinstance(value, str) else ""
        fits = 0 < len(purpose.encode()) <= 512
    except UnicodeEncodeError:
        fits = False
    if not fits or values.is_untidy(purpose):
        raise values.refused("the purpose is a trimmed text of at most 512 bytes.", "/purpose")
    return purpose


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise values.refused("free text is UTF-8.", "/bytes") from None


def _decoded(content: bytes, media_type: str) -> JSONValue:
    if not _JSON_TYPE.match(media_type):
        return None
    try:
        return parse_json(content)
    except JsonValueError as error:
        raise values.refused(f"the state is no JSON: {error.reason}", "/bytes") from None


def _names(scope: object) -> tuple[str, ...]:
    found = values.exactly(scope, ("namespace", "runId"), "/scope")
    namespace = values.storage_id(found["namespace"], "/scope/namespace")
    run_id = values.storage_id(found["runId"], "/scope/runId")
    return ("artifacts", "namespaces", files.hashed(namespace), "runs", files.hashed(run_id))


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _broken(path: Path) -> StorageError:
    text = f"{path.name} is not as the store wrote it."
    return StorageError("ARTIFACT_INTEGRITY", text, path=str(path))
