"""The example of the guide to approvals does what the guide says."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from gates import create_callback_client, direct_router
from runs import fn_job, pipeline, run
from runs.shapes import tool as tools

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "approvals.md"


def test_the_example_publishes_once_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found is not None
    sent: list[str] = []

    def send(post: Any, key: str) -> dict[str, str]:
        sent.append(key)
        return {"url": f"posts/{post.draft_id}"}

    guide = types.ModuleType("guide")
    guide.__dict__["send"] = send
    monkeypatch.setitem(sys.modules, "guide", guide)
    # Other tests of this process have tools of that name.
    monkeypatch.setattr(tools, "_tools", {})
    exec(compile(found[1], "guide", "exec"), guide.__dict__)
    client = create_callback_client()

    def allow(event: dict[str, Any]) -> None:
        if event["kind"] == "approval.requested":
            (asked,) = client.list_pending()
            direct_router(client, asked, "ada", lambda _request: {"decision": "allow_once"})

    step = fn_job("publish", guide.body)
    job = pipeline("post", [{"name": "publish", "job": step}])
    done = run(job, params={"draft": "d1"}, callbacks=client, on_callback="wait", on_event=allow)

    data: Any = done.outcome.data
    assert data["publish"]["summary"] == "posted as posts/d1"
    assert len(sent) == 1
