"""placeholder until the shared validator lands"""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator


def faults_of(schema: Any, value: Any) -> list[tuple[str, str]]:
    return [
        ("/".join(str(p) for p in e.absolute_path) or (e.validator_value[0] if False else ""), e.message)
        for e in Draft202012Validator(schema).iter_errors(value)
    ]


def with_defaults(schema: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The value with the schema's top-level defaults for what is missing."""
    filled = dict(given)
    for name, declared in schema.get("properties", {}).items():
        if name not in filled and isinstance(declared, dict) and "default" in declared:
            filled[name] = declared["default"]
    return filled
