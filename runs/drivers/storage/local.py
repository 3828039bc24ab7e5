"""Storage of runs in a folder of this machine (graph.md section 9)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.drivers.storage import artifacts, events
from runs.drivers.storage.artifacts import LocalArtifactStore
from runs.drivers.storage.events import LocalEventStore
from runs.drivers.storage.known_secrets import KnownSecrets
from runs.drivers.storage.values import Limits, policy_digest, storage_id
from runs.kernel.jsonable import FrozenDict, JSONValue


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunStorage:
    """Both stores, and the record that names them. Handles and secrets are never serialised."""

    record: FrozenDict
    event_store: LocalEventStore
    artifact_store: LocalArtifactStore
    known_secrets: KnownSecrets

    @property
    def namespace(self) -> str:
        return str(self.record["namespace"])

    def stream(self, run_id: str) -> dict[str, str]:
        """The reference of a run's event stream."""
        return {"namespace": self.namespace, "streamId": run_id}


def create_local_run_storage(
    directory: str | os.PathLike[str],
    namespace: str = "local",
    policy: Mapping[str, Any] | None = None,
    known_secrets: Iterable[str] = (),
) -> RunStorage:
    """An event and an artifact store below `directory`, made when they are first written to.

    `policy` holds the limits (graph.md K50); without it a payload takes 256 KiB, a batch and an
    artifact 1 MiB and the artifacts of a run 16 MiB. What is in `known_secrets` enters neither.
    """
    root = Path(directory).absolute()
    limits = Limits.from_policy(policy)
    secrets = KnownSecrets(known_secrets)
    record = FrozenDict(
        {
            "schemaVersion": 1,
            "namespace": storage_id(namespace, "/namespace"),
            "eventStore": _port(events.NAME, root, limits.of_events),
            "artifactStore": _port(artifacts.NAME, root, limits.of_artifacts),
            "policy": limits.policy(),
        }
    )
    secrets.refuse_in(record)
    return RunStorage(
        record=record,
        event_store=LocalEventStore(root, limits, secrets),
        artifact_store=LocalArtifactStore(root, limits, secrets),
        known_secrets=secrets,
    )


def _port(name: str, root: Path, limits: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    digest = policy_digest({"root": str(root), **limits})
    return {"schemaVersion": 1, "name": name, "version": "1", "configDigest": digest}
