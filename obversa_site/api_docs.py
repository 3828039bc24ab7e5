"""The description of the API as a page for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

Part = Mapping[str, Any]


def described() -> dict[str, Any]:
    """The OpenAPI description as plain JSON."""
    from obversa_site.api import api

    made: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema()))
    return made


@never_cache
@login_required
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The description as a page of this site; it loads nothing from elsewhere."""
    schema = described()
    operations = list(_operations(schema))
    groups = [
        {**tag, "operations": [one for one in operations if one["tag"] == tag["name"]]}
        for tag in schema["tags"]
    ]
    page = {"about": schema["info"]["description"], "groups": groups}
    return render(request, "docs/api.html", page)


def _operations(schema: Part) -> Iterator[dict[str, Any]]:
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            body = _example(schema, operation.get("requestBody", {}))
            yield {
                "id": operation["operationId"],
                "tag": operation["tags"][0],
                "method": method.upper(),
                "path": path,
                "summary": operation["summary"],
                "description": operation.get("description", ""),
                "parameters": [_parameter(one) for one in operation["parameters"]],
                "body": _pretty(body),
                "curl": _curl(method, path, operation["parameters"], body),
                "answers": [
                    _answer(schema, status, answer)
                    for status, answer in operation["responses"].items()
                ],
            }


def _parameter(parameter: Part) -> dict[str, Any]:
    return {
        "name": parameter["name"],
        "place": parameter["in"],
        "required": parameter.get("required", False),
        "about": parameter.get("description", ""),
    }


def _answer(schema: Part, status: str, answer: Part) -> dict[str, Any]:
    is_error = int(status) >= 400
    return {
        "status": status,
        "about": answer["description"],
        "example": "" if is_error else _pretty(_example(schema, answer)),
    }


def _example(schema: Part, part: Part) -> Any:
    """The first example of a body or an answer, made from its parts where it has none itself."""
    for content in part.get("content", {}).values():
        return content["example"] if "example" in content else example_of(schema, content["schema"])
    return None


def example_of(schema: Part, part: Part) -> Any:
    """An example of a schema: its own, or one made from its properties."""
    if "$ref" in part:
        return example_of(schema, schema["components"]["schemas"][part["$ref"].split("/")[-1]])
    if part.get("examples"):
        return part["examples"][0]
    for inner in (*part.get("anyOf", ()), *part.get("allOf", ())):
        if inner.get("type") != "null":
            return example_of(schema, inner)
    match part.get("type"):
        case "object":
            properties = part.get("properties", {})
            return {name: example_of(schema, inner) for name, inner in properties.items()}
        case "array":
            return [example_of(schema, part.get("items", {}))]
        case "integer":
            return 19
        case _:
            return None


def _pretty(example: Any) -> str:
    if example is None or isinstance(example, str):
        return example or ""
    return json.dumps(example, indent=2, ensure_ascii=False)


def _curl(method: str, path: str, parameters: list[Part], body: Any) -> str:
    for parameter in parameters:
        if parameter["in"] == "path":
            told = parameter.get("example") or parameter["schema"].get("example", "")
            path = path.replace(f"{{{parameter['name']}}}", str(told))
    lines = [f'curl -H "Authorization: Bearer $OBVERSA_KEY" {settings.OBVERSA_BASE_URL}{path}']
    if method != "get" and body is None:
        lines.append("-X POST")
    if body is not None:
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"-d '{json.dumps(body, ensure_ascii=False)}'")
    return " \\\n  ".join(lines)
