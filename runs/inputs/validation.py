"""Whether a value fits a JSON Schema, all the way down, in bounded time (design D2).

The contract's own check (runs.kernel.answers) looks at top-level fields only. A host checks the
whole answer with `jsonschema` before it submits: JSON Schema 2020-12, no reference that leaves the
schema, patterns matched by the kernel's matcher, a budget of steps, and messages of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, Final, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from runs.inputs.fault_words import field_and_words
from runs.inputs.formats import format_checker
from runs.kernel.jsonable import JSONValue, canonical_json, parse_json, thaw
from runs.kernel.patterns import PatternError, compile_pattern

MAX_SCHEMA_TEXT: Final = 256 * 1024
MAX_SCHEMA_DEPTH: Final = 64
MAX_VALUE_TEXT: Final = 1024 * 1024
MAX_FAULTS: Final = 20
MAX_STEPS: Final = 200_000
MAX_MESSAGE: Final = 10_000

Fault = tuple[str, str]
_NO_FORMATS: Final = FormatChecker(formats=())
_steps: ContextVar[list[int] | None] = ContextVar("steps", default=None)

_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLES: Final = (
    "items",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)


class SchemaFault(ValueError):
    """The schema cannot be used to check anything; the message names the part."""


class _TooMuch(Exception):
    """The check took more steps than a check may take."""


def faults_of(schema: Any, value: Any) -> list[Fault]:
    """What is wrong with the value, as (top-level field, words); empty when it fits.

    A fault of the whole value has an empty field. A schema that is itself broken lets nothing pass.
    """
    if len(canonical_json(value)) > MAX_VALUE_TEXT:
        return [("", f"It is longer than {MAX_VALUE_TEXT // 1024} KiB.")]
    try:
        validator = _validator(canonical_json(schema))
    except SchemaFault as fault:
        return [("", f"The question's own schema is broken, so no answer can count: {fault}")]
    budget = _steps.set([MAX_STEPS])
    try:
        errors = islice(validator.iter_errors(thaw(value)), MAX_FAULTS)
        return list(dict.fromkeys(field_and_words(error) for error in errors))
    except (_TooMuch, RecursionError):
        return [("", "It takes too long to check against its schema.")]
    except Unresolvable as error:
        return [("", f"The question's own schema refers to {error.ref}, which is not in it.")]
    finally:
        _steps.reset(budget)


def check_schema(schema: Any) -> None:
    """Raise SchemaFault naming the first part of the schema that could not be checked."""
    _validator(canonical_json(schema))


def with_defaults(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The value with the schema's top-level defaults for what is missing."""
    filled = dict(given)
    for name, declared in _mapping(schema.get("properties")).items():
        if name not in filled and isinstance(declared, Mapping) and "default" in declared:
            filled[name] = thaw(declared["default"])
    return filled


@lru_cache(maxsize=128)
def _validator(text: str) -> Validator:
    if len(text) > MAX_SCHEMA_TEXT:
        raise SchemaFault(f"it is longer than {MAX_SCHEMA_TEXT // 1024} KiB.")
    schema = parse_json(text)
    for part, subschema in _subschemas(schema, "", 0):
        _check_part(part, subschema)
    try:
        # Formats of the meta-schema are about patterns, which were read above by their own reader.
        Draft202012Validator.check_schema(
            cast("Any", schema), format_checker=FormatChecker(formats=())
        )
    except SchemaError as error:
        part = "/".join(str(key) for key in error.absolute_path) or "it"
        raise SchemaFault(f"{part} is not JSON Schema 2020-12.") from None
    except RecursionError:
        raise SchemaFault("it nests too deeply.") from None
    made: Validator = _Bounded(schema, registry=Registry(), format_checker=format_checker)
    return made


def _subschemas(schema: JSONValue, part: str, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if depth > MAX_SCHEMA_DEPTH:
        raise SchemaFault(f"it nests more than {MAX_SCHEMA_DEPTH} levels deep.")
    if not isinstance(schema, dict):
        return
    yield part, schema
    for keyword in _MAPS:
        for name, inner in _mapping(schema.get(keyword)).items():
            yield from _subschemas(inner, f"{part}/{keyword}/{name}", depth + 1)
    for keyword in _LISTS:
        members = schema.get(keyword)
        for index, inner in enumerate(members if isinstance(members, list) else ()):
            yield from _subschemas(inner, f"{part}/{keyword}/{index}", depth + 1)
    for keyword in _SINGLES:
        yield from _subschemas(schema.get(keyword), f"{part}/{keyword}", depth + 1)


def _check_part(part: str, schema: dict[str, Any]) -> None:
    for keyword in ("$ref", "$dynamicRef"):
        target = schema.get(keyword)
        if isinstance(target, str) and not target.startswith("#"):
            raise SchemaFault(f"{part}/{keyword} leaves the schema.")
    if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
        raise SchemaFault(f"{part or 'it'} uses unevaluated…, which has no bounded check.")
    patterns = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    for pattern in [*patterns, *_mapping(schema.get("patternProperties"))]:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            raise SchemaFault(f"{part or 'it'}: {error}.") from None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# --- keywords whose stock check may run for ever --------------------------------------------------


def _matches(pattern: str, text: str) -> bool:
    try:
        found = compile_pattern(pattern)
        _spend(len(text) * len(found.states) // 20)
        return found.search(text)
    except PatternError:
        return False


def _pattern(_: Validator, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _matches(pattern, value):
        yield ValidationError("pattern")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], value: Any, _: Any
) -> Iterator[ValidationError]:
    for pattern, subschema in patterns.items() if isinstance(value, dict) else ():
        for name, item in value.items():
            if _matches(pattern, name):
                yield from validator.descend(item, subschema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, value: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    patterns = list(_mapping(schema.get("patternProperties")))
    for name in value.keys() - _mapping(schema.get("properties")).keys():
        if any(_matches(pattern, name) for pattern in patterns):
            continue
        if allowed is False:
            yield ValidationError("additionalProperties", path=[name])
        else:
            yield from validator.descend(value[name], allowed, path=name)


def _unique_items(_: Validator, wanted: bool, value: Any, __: Any) -> Iterator[ValidationError]:
    if not wanted or not isinstance(value, list):
        return
    seen = set()
    for item in value:
        text = canonical_json(item)
        _spend(1 + len(text) // 8)
        seen.add(text)
    if len(seen) < len(value):
        yield ValidationError("uniqueItems")


Keyword = Callable[[Any, Any, Any, Any], Any]


def _spend(steps: int) -> None:
    left = _steps.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise _TooMuch


def _weight(keyword: str, wanted: Any, value: Any) -> int:
    """How many steps a look at this value counts for: a schema may ask for it again and again."""
    weight = 10 if keyword in ("$ref", "$dynamicRef") else 1
    if isinstance(wanted, list | dict):
        weight += len(wanted) // 8
    if isinstance(value, list | dict):
        weight += len(value) // 8
        if keyword in ("enum", "const"):
            weight += len(repr(wanted)) // 32
    elif keyword == "format" and isinstance(value, str):
        weight += len(value) // 64
    return weight


def _counted(keyword: str, check: Keyword) -> Keyword:
    def counted(validator: Any, wanted: Any, value: Any, schema: Any) -> Any:
        _spend(_weight(keyword, wanted, value))
        for error in check(validator, wanted, value, schema) or ():
            # Stock messages repeat the value, and anyOf keeps those of all its members.
            _spend(len(error.message) // 64)
            error.message = error.message[:MAX_MESSAGE]
            yield error

    return counted


_OWN: Final[dict[str, Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
_Bounded: Any = extend(  # type: ignore[no-untyped-call]  # untyped in its stubs
    Draft202012Validator,
    {
        name: _counted(name, check)
        for name, check in {**Draft202012Validator.VALIDATORS, **_OWN}.items()
    },
)
