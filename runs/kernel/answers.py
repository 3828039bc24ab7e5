"""Whether an answer has the shape its gate asked for.

Only the contract's own rules are here: required names, top-level types, `allOf`, `anyOf`, and per
field `pattern` and `enum`. Deeper rules are for the host to check before it submits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from runs.kernel.jsonable import JSONValue, canonical_json
from runs.kernel.patterns import PatternError, compile_pattern


def _is_integer(value: JSONValue) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[JSONValue], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": _is_integer,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list | tuple),
    "null": lambda value: value is None,
}


def refusal(schema: Mapping[str, JSONValue], response: object) -> str | None:
    """Say why the response does not answer this schema, or None when it does."""
    if not isinstance(response, dict):
        return "The response is not a JSON object."
    return (
        _all_of(schema, response)
        or _any_of(schema, response)
        or next(_shape_faults(schema), None)
        or _missing(schema, response)
        or next(_field_faults(schema, response), None)
    )


def check_schema(schema: Mapping[str, JSONValue]) -> None:
    """Raise ValueError naming the first part of a response schema that no answer could pass."""
    fault = next(_schema_faults(schema, "response_schema"), None)
    if fault is not None:
        raise ValueError(fault)


def _all_of(schema: Mapping[str, JSONValue], response: Mapping[str, JSONValue]) -> str | None:
    if "allOf" not in schema:
        return None
    members = _members(schema["allOf"])
    if members is None:
        return "The schema's allOf is not a list of objects."
    return next((fault for member in members if (fault := refusal(member, response))), None)


def _any_of(schema: Mapping[str, JSONValue], response: Mapping[str, JSONValue]) -> str | None:
    if "anyOf" not in schema:
        return None
    members = _members(schema["anyOf"])
    if members is None:
        return "The schema's anyOf is not a list of objects."
    faults: list[str] = []
    for member in members:
        fault = refusal(member, response)
        if fault is None:
            return None
        faults.append(fault)
    return f"The response fits no member of anyOf. {' '.join(dict.fromkeys(faults))}".rstrip()


def _missing(schema: Mapping[str, JSONValue], response: Mapping[str, JSONValue]) -> str | None:
    absent = next((name for name in _texts(schema.get("required")) if name not in response), None)
    return None if absent is None else f"{absent} is required and missing."


def _field_faults(
    schema: Mapping[str, JSONValue], response: Mapping[str, JSONValue]
) -> Iterator[str]:
    properties = _properties(schema)
    for name, value in response.items():
        declared = properties.get(name)
        if declared is not None and "type" in declared:
            fault = _field_fault(name, declared, value)
            if fault is not None:
                yield fault


def _field_fault(name: str, declared: Mapping[str, JSONValue], value: JSONValue) -> str | None:
    kinds = declared["type"]
    names = [kinds] if isinstance(kinds, str) else _texts(kinds)
    if not any(_TYPES[kind](value) for kind in names if kind in _TYPES):
        return f"{name} is not of type {' or '.join(names) or 'any known name'}."
    if "pattern" in declared and isinstance(value, str):
        fault = _pattern_fault(name, declared["pattern"], value)
        if fault is not None:
            return fault
    if "enum" in declared:
        choices = declared["enum"]
        if not isinstance(choices, list | tuple):
            return f"The schema's enum for {name} is not a list."
        given = canonical_json(value)
        if not any(given == canonical_json(choice) for choice in choices):
            return f"{name} is not one of the values its enum allows."
    return None


def _pattern_fault(name: str, pattern: JSONValue, value: str) -> str | None:
    try:
        found = compile_pattern(_pattern_text(pattern)).search(value)
    except PatternError as error:
        return f"{name} cannot be checked: {error}."
    return None if found else f"{name} does not match its pattern."


def _schema_faults(schema: Mapping[str, JSONValue], part: str) -> Iterator[str]:
    for keyword in ("allOf", "anyOf"):
        if keyword in schema:
            members = _members(schema[keyword])
            if members is None:
                yield f"{part}.{keyword} is not a list of objects."
                return
            for index, member in enumerate(members):
                yield from _schema_faults(member, f"{part}.{keyword}[{index}]")
    for fault in _shape_faults(schema):
        yield f"{part}: {fault}"
        return
    for name, declared in _properties(schema).items():
        if "pattern" in declared:
            try:
                compile_pattern(_pattern_text(declared["pattern"]))
            except PatternError as error:
                yield f"{part}.properties.{name}.pattern: {error}."
        if not isinstance(declared.get("enum", ()), list | tuple):
            yield f"{part}.properties.{name}.enum is not a list."


def _shape_faults(schema: Mapping[str, JSONValue]) -> Iterator[str]:
    properties = schema.get("properties", {})
    if isinstance(properties, dict):
        for name, declared in properties.items():
            if not isinstance(declared, dict):
                yield f"The schema's properties.{name} is not an object."
    else:
        yield "The schema's properties is not an object."
    required = schema.get("required", ())
    if not isinstance(required, list | tuple):
        yield "The schema's required is not a list."
    elif not all(isinstance(name, str) for name in required):
        yield "The schema's required holds something that is not a field name."


def _members(value: JSONValue) -> list[dict[str, JSONValue]] | None:
    if not isinstance(value, list | tuple):
        return None
    members = [member for member in value if isinstance(member, dict)]
    return members if len(members) == len(value) else None


def _properties(schema: Mapping[str, JSONValue]) -> dict[str, dict[str, JSONValue]]:
    """The declared fields; _shape_faults has told about anything left out here."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: item for name, item in properties.items() if isinstance(item, dict)}


def _texts(value: JSONValue) -> list[str]:
    items = value if isinstance(value, list | tuple) else ()
    return [item for item in items if isinstance(item, str)]


def _pattern_text(pattern: JSONValue) -> str:
    if not isinstance(pattern, str):
        raise PatternError("the pattern is not text")
    return pattern
