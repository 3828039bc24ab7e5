"""How each action is tried at each surface; what comes back as one sign.

`+` it happens, `-` it is forbidden, `0` it is not there, `?` the door (sign in, 401).
"""

from __future__ import annotations

from typing import Any, Final

from django.test import Client

from tests.site.matrix.world import World

YES: Final = {"approved": True}
# What a GET of the API asks for, and the page of the same.
READS: Final = {
    "see": ("/requests/{gate}", "/gates/{gate}/"),
    "history": ("/requests/{gate}/history", "/gates/{gate}/"),
    "receipt": ("/requests/{gate}/receipt", "/gates/{gate}/receipt/"),
    "frame": ("", "/gates/{gate}/evidence/{file}/"),
    "see-run": ("/runs/{run}", "/runs/{run}/"),
    "events": ("/runs/{run}/events", "/runs/{run}/"),
    "stream": ("/runs/{run}/stream", ""),
    "operations": ("", "/operations/"),
    "file": ("/runs/{run}/artifacts/{file}", "/runs/{run}/artifacts/{file}/"),
}
# What is POSTed, where; the body of the API's and of the page's.
ACTS: Final[dict[str, tuple[str, str]]] = {
    "claim": ("/requests/{gate}/claim", "/gates/{gate}/claim/"),
    "release": ("/requests/{gate}/release", "/gates/{gate}/release/"),
    "answer": ("/requests/{gate}/submit", "/gates/{gate}/answer/"),
    "answer-several": ("", "/bulk/answer/"),
    "force-release": ("/requests/{gate}/force-release", "/gates/{gate}/force-release/"),
    "withdraw": ("/requests/{gate}/withdraw", "/gates/{gate}/withdraw/"),
    "assign": ("/requests/{gate}/assign", "/gates/{gate}/assign/"),
    "delegate": ("/requests/{gate}/delegate", "/gates/{gate}/delegate/"),
    "break-glass": ("/requests/{gate}/break-glass", "/gates/{gate}/break-glass/"),
    "start": ("/runs", "/workflows/{workflow}/start/"),
    "cancel": ("/runs/{run}/cancel", "/runs/{run}/cancel/"),
    "resume": ("/runs/{run}/resume", "/runs/{run}/resume/"),
    "retry": ("/runs/{run}/retry", "/runs/{run}/retry/"),
    "rerun": ("/runs/{run}/rerun", "/runs/{run}/rerun/"),
    "revoke": ("/grants/{grant}/revoke", "/grants/{grant}/revoke/"),
}


def address(template: str, world: World) -> str:
    return template.format(
        gate=world.gate.pk, run=world.run.pk, file=world.file, workflow=world.workflow,
        grant=world.grant.pk,
    )  # fmt: skip


def by_page(client: Client, world: World, action: str, **headers: str) -> Any:
    """As a browser does it; a key in the headers opens no page."""
    if action in READS:
        return client.get(address(READS[action][1], world), headers=headers)
    form: dict[str, Any] = {"reason": "because", "digest": world.gate.digest}
    match action:
        case "answer" | "break-glass":
            form["f-approved"] = "true"
        case "answer-several":
            form |= {"f-approved": "true", "pick": f"{world.gate.pk}.{world.gate.digest}"}
        case "assign" | "delegate":
            form["to"] = "colleague"
        case "start":
            form = {"once": "1"}
    return client.post(address(ACTS[action][1], world), form, headers=headers)


def by_api(client: Client, world: World, action: str, **headers: str) -> Any:
    """As a program does it, by session or by key."""
    if action in READS:
        return client.get(f"/api/v1{address(READS[action][0], world)}", headers=headers)
    body: dict[str, Any] = {}
    match action:
        case "answer":
            body = {"digest": world.gate.digest, "response": YES}
        case "break-glass":
            body = {"digest": world.gate.digest, "response": YES, "reason": "because"}
        case "force-release" | "withdraw":
            body = {"reason": "because"}
        case "assign" | "delegate":
            body = {"to": "colleague", "reason": "because"}
        case "start":
            body = {"workflow": world.workflow}
    path = f"/api/v1{address(ACTS[action][0], world)}"
    return client.post(path, body, content_type="application/json", headers=headers)


def by_mail(client: Client, world: World, action: str, **headers: str) -> Any:
    """The link of a message, opened as mail programs do: looked at, and looked at again."""
    link = world.gate.get_absolute_url()
    client.head(link, headers=headers)
    client.get(link, headers={"Purpose": "prefetch", "User-Agent": "Scanner/1.0"} | headers)
    return client.get(f"{link}?answer=yes&approved=true&decision=allow_once", headers=headers)


def mark(response: Any) -> str:
    """What came back, as one sign."""
    location = response.headers.get("Location", "")
    response.getvalue()  # a download that is read to its end closes its file
    if response.status_code == 401 or location.startswith(("/sign-in/", "/admin/login/")):
        return "?"
    known = {200: "+", 201: "+", 302: "+", 403: "-", 404: "0"}
    return known.get(response.status_code, str(response.status_code))
