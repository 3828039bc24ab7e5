"""The workflows of this installation: workers import them and keep the catalogue."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from django.apps import apps
from django.conf import settings

from runs import publishing
from runs.kernel.errors import LoopError
from runs.kernel.jsonable import JsonValueError
from runs.models import Definition, Workflow
from runs.people.audiences import AudienceRefused, audience_for
from runs.publishing import Published
from runs.turns import admission
from runs.turns.lines import Limit

logger = logging.getLogger(__name__)

SHIPPED = ("runs.examples.release",)
# Who sees a workflow file that never said whom it is for.
_KEEPERS = {"permissions": ["runs.view_run"]}
_lock = threading.Lock()


class _Files:
    """Whether the files were imported, and what each said that would not."""

    loaded = False
    errors: ClassVar[dict[str, str]] = {}


def published(name: str) -> Published | None:
    """The workflow as this process's code has it now; loads the files on first use."""
    load()
    return publishing.offered().get(name)


def load() -> dict[str, str]:
    """Import every workflow file once; returns the error of each that does not import."""
    with _lock:
        if not _Files.loaded:
            _Files.errors.clear()
            _Files.errors.update(_import_all())
            _Files.loaded = True
        return dict(_Files.errors)


def reload() -> dict[str, str]:
    """Import everything anew, for a process that saw no change of code so far."""
    with _lock:
        publishing.withdraw_all()
        _Files.loaded = False
    return load()


def _import_all() -> Iterator[tuple[str, str]]:
    for module in _modules():
        with publishing.loading(module):
            try:
                _fresh(module)
            except (Exception, SystemExit) as error:  # noqa: BLE001  it is the author's code
                publishing.withdraw(module)
                logger.warning("workflow file does not import module=%s error=%r", module, error)
                yield module, _told(error)


def _modules() -> list[str]:
    own = [
        f"{app.name}.workflows"
        for app in apps.get_app_configs()
        if importlib.util.find_spec(f"{app.name}.workflows") is not None
    ]
    files = sorted(str(path) for path in _files())
    return [*SHIPPED, *own, *settings.OBVERSA_WORKFLOWS, *files]


def _files() -> Iterator[Path]:
    where = getattr(settings, "OBVERSA_WORKFLOWS_DIR", "")
    if where:
        yield from (path for path in Path(where).glob("*.py") if not path.name.startswith("_"))


def _fresh(module: str) -> ModuleType:
    if module.endswith(".py"):
        return _from_file(Path(module))
    known = sys.modules.get(module)
    return importlib.reload(known) if known is not None else importlib.import_module(module)


def _from_file(path: Path) -> ModuleType:
    mark = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"obversa_workflows_{path.stem}_{mark}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    try:
        spec.loader.exec_module(made)
    except BaseException:
        del sys.modules[name]
        raise
    return made


def _told(error: BaseException) -> str:
    """The error and the line of the author's file, without locals."""
    lines = traceback.format_exception_only(error)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    # The outermost is the file itself; what it calls fails deeper, at a line nobody can mend.
    where = next((f for f in reversed(frames) if f.filename == frames[0].filename), None)
    text = "".join(lines).strip()
    return f"{text} (line {where.lineno})" if where is not None else text


def refresh(*, again: bool = False, alone: bool = True) -> None:
    """Write what this process can run into the catalogue that web processes read.

    A process that does not know every folder of workflows is not `alone`: it adds, and takes
    nothing off the list.
    """
    errors = reload() if again else load()
    listed = set()
    for made in publishing.offered().values():
        listed.add(made.name)
        try:
            enlist(made)
        except (AudienceRefused, JsonValueError, LoopError) as error:
            _enlist_broken(made.name, made.module, str(error))
    for module, told in errors.items():
        name = (Path(module).stem if module.endswith(".py") else module)[:150]
        # Never in the place of a workflow that another file publishes under this name.
        name = name if name not in listed else f"{name} (does not import)"
        listed.add(name)
        _enlist_broken(name, module, told)
    if alone:
        Workflow.objects.exclude(name__in=listed).filter(listed=True).update(listed=False)


def enlist(made: Published) -> Workflow:
    """Put one workflow into the catalogue as it is now."""
    row, _ = Workflow.objects.update_or_create(
        name=made.name,
        defaults={
            "title": made.title,
            "description": made.description,
            "params_schema": dict(made.params),
            "audience": audience_for(made.audience),
            "starters": None if made.starters is None else audience_for(made.starters),
            "definition": define(made),
            "module": made.module[:300],
            "priority": made.priority,
            "teams": made.teams,
            "error": "",
            "listed": True,
        },
    )
    _limit(made)
    return row


def _limit(made: Published) -> None:
    """Let the workflow's limit be what its author says now; the sweep lets in who fits."""
    key = admission.key_of(admission.WORKFLOW, made.name)
    if made.concurrency is None:
        Limit.objects.filter(key=key).delete()
    else:
        told = {"most": made.concurrency.limit, "lends": made.concurrency.lends}
        Limit.objects.update_or_create(key=key, defaults=told)


def _enlist_broken(name: str, module: str, error: str) -> None:
    # An error tells of the code behind it: it is for those who were let at the workflow before.
    known = Workflow.objects.select_related("audience").filter(name=name).first()
    Workflow.objects.update_or_create(
        name=name,
        defaults={
            "title": name,
            "description": "",
            "audience": known.audience if known is not None else audience_for(_KEEPERS),
            "definition": None,
            "module": module[:300],
            "error": error.replace("\0", ""),
            "listed": True,
        },
    )


def define(made: Published) -> Definition:
    """The stored definition of what the author offers."""
    found, _ = Definition.objects.get_or_create(
        digest=made.digest,
        defaults={"identity": made.identity, "shape": made.job.shape.to_json()},
    )
    return found
