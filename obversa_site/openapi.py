"""The description of the API: what ninja derives, and for each operation what it refuses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

ERROR_SCHEMA: Final[Mapping[str, Any]] = {
    "title": "Error",
    "description": "Why a request was refused: a stable code for programs, a message for people.",
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "field": {"type": "string", "description": "The field that is at fault."},
                "details": {"description": "Facts behind the refusal; they differ by code."},
            },
        }
    },
}
TAGS: Final = [
    {"name": "Requests", "description": "Questions: ask, claim, answer, rescue."},
    {"name": "Grants", "description": "What runs without asking, and the end of that."},
    {"name": "Runs", "description": "Start runs, follow their record, stop and resume them."},
    {"name": "Workflows", "description": "What can be started here."},
]
MESSAGES: Final[Mapping[str, str]] = {
    "INVALID_JSON_VALUE": "The value at /input/n is not a finite number.",
    "archived": "Run 8f14e45f was archived on 2026-01-01; an operator brings it back.",
    "answered": "Ada answered this question at 2026-01-01 09:30 UTC. It takes one answer.",
    "claimed": "Ben holds this question since 2026-01-01 09:30 UTC.",
    "csrf": "Send the CSRF token of this session in the X-CSRFToken header.",
    "invalid": "approved: This field is required.",
    "not-found": "There is nothing at this address for you.",
    "scope": "This key has no scope 'answer'. Make one that has it.",
    "stale": "This answer is for another question. Read the question again.",
    "too-large": "The request is larger than 2 MiB. Send less, or a link to it.",
    "too-many-open": "You have 10000 questions open, and no more are let in.",
    "too-many-requests": "Too many requests. Wait as long as Retry-After says.",
    "unauthenticated": "Sign in, or send `Authorization: Bearer KEY`.",
    "validation": "limit: Input should be greater than or equal to 1.",
}
_DESCRIPTIONS: Final[Mapping[int, str]] = {
    400: "The body is not JSON as this API reads it.",
    401: "Nobody is signed in, or the key opens nothing.",
    403: "Not yours to do.",
    404: "There is no such thing, or it is not yours to see.",
    409: "Somebody was faster, or it is not in a state for this.",
    410: "Its time is over, or it is in the archive.",
    413: "The body is larger than 2 MiB.",
    416: "The part that was asked for begins behind the end of the file.",
    422: "A field is at fault; `field` names it.",
    429: "Too much at once; where waiting helps, `Retry-After` says how long.",
}

_QUESTION: Final = {"id": "$response.body#/id"}
_SAME: Final = {"id": "$request.path.id"}
_TOKEN: Final = {"claimToken": "$response.body#/claimToken"}
_RUN_ACTS: Final = ("getRun", "listEvents", "cancelRun", "resumeRun", "rerunRun")
_REQUEST_ACTS: Final = (
    "getRequest", "getRequestHistory", "getRequestReceipt", "claimRequest", "withdrawRequest",
    "forceReleaseRequest",
)  # fmt: skip
# Where what one operation answers leads: operation, status, and the next with what it takes along.
LINKS: Final[Mapping[tuple[str, int], Mapping[str, Mapping[str, Any]]]] = {
    **{
        ("askRequest", status): {
            **{name: {"parameters": _QUESTION} for name in _REQUEST_ACTS},
            "submitRequest": {
                "parameters": _QUESTION,
                "requestBody": {"digest": "$response.body#/digest", "response": {"approved": True}},
            },
        }
        for status in (200, 201)
    },
    ("claimRequest", 200): {"releaseRequest": {"parameters": _SAME, "requestBody": _TOKEN}},
    ("submitRequest", 200): {name: {"parameters": _SAME} for name in ("getRequestReceipt",)},
    ("startRun", 201): {name: {"parameters": _QUESTION} for name in _RUN_ACTS},
    ("cancelRun", 200): {name: {"parameters": _SAME} for name in ("resumeRun", "rerunRun")},
}


_RETRY_AFTER: Final = {
    "Retry-After": {
        "description": "The seconds to wait; missing where waiting alone does not help.",
        "schema": {"type": "integer"},
    }
}


def complete(schema: dict[str, Any], status_of: Mapping[str, int]) -> dict[str, Any]:
    """Add to every operation where it leads and the errors it may answer with, by their codes."""
    schema["tags"] = TAGS
    schema["components"]["schemas"]["Error"] = ERROR_SCHEMA
    by_name = {
        one["operationId"]: one for path in schema["paths"].values() for one in path.values()
    }
    for (name, status), links in LINKS.items():
        by_name[name]["responses"][status]["links"] = {
            following: {"operationId": following, **how} for following, how in links.items()
        }
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            own = operation.pop("x-refusals", [])
            if "/requests/{id}" in path or "/runs/{id}/" in path:
                own = [*own, "archived"]
            for parameter in operation["parameters"]:
                # Here a list is for schemas; a parameter has one example, or named ones.
                if isinstance(parameter.get("examples"), list):
                    parameter["example"] = parameter.pop("examples")[0]
            _add_refusals(operation, [*_common(method, operation), *own], status_of)
    return schema


def _common(method: str, operation: Mapping[str, Any]) -> list[str]:
    """What an operation refuses whatever it does."""
    codes = ["unauthenticated", "too-many-requests"]
    if method != "get":
        codes += ["csrf", "too-large"]
    if "requestBody" in operation:
        codes.append("INVALID_JSON_VALUE")
    if "requestBody" in operation or _has_free_parameter(operation):
        codes.append("validation")
    return codes


def _has_free_parameter(operation: Mapping[str, Any]) -> bool:
    return any(parameter["in"] != "path" for parameter in operation["parameters"])


def _add_refusals(
    operation: dict[str, Any], codes: Iterable[str], status_of: Mapping[str, int]
) -> None:
    by_status: dict[int, list[str]] = defaultdict(list)
    for code in dict.fromkeys(codes):
        by_status[status_of[code]].append(code)
    for status, group in sorted(by_status.items()):
        examples = {code: {"value": {"error": _example(code)}} for code in group}
        headers = {"headers": _RETRY_AFTER} if status == 429 else {}
        operation["responses"][status] = headers | {
            "description": f"{_DESCRIPTIONS[status]} Codes: {', '.join(group)}.",
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/Error"},
                    "examples": examples,
                }
            },
        }


def _example(code: str) -> dict[str, str]:
    return {"code": code, "message": MESSAGES.get(code, "What happened, and what to do next.")}
