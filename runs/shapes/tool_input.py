"""What a tool takes: a pydantic model or a JSON Schema, and the one form of an input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from runs.kernel.errors import DeclarationError
from runs.kernel.jsonable import JsonValueError, canonical_json, snapshot, thaw
from runs.kernel.patterns import PatternError, compile_pattern
from runs.kernel.tool_errors import ToolRefused

MAX_INPUT: Final = 64 * 1024
MAX_DEPTH: Final = 32
MAX_SCHEMA: Final = 64 * 1024
MAX_FAULTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInput:
    """The declared input; `model` is None where it was declared as a schema."""

    schema: Mapping[str, Any]
    model: Any = None

    @classmethod
    def declared(cls, who: str, given: Any) -> Self:
        """Read what an author wrote; raises DeclarationError."""
        if given is None:
            given = {"type": "object", "properties": {}, "additionalProperties": False}
        if isinstance(given, type) and hasattr(given, "model_json_schema"):
            return cls(schema=given.model_json_schema(), model=given)
        if not isinstance(given, Mapping):
            raise DeclarationError(f"input of {who} is a JSON Schema or a pydantic model.")
        try:
            schema = thaw(snapshot(dict(given)))
            _checked(schema)
        except (JsonValueError, SchemaError, PatternError, ValueError) as error:
            text = getattr(error, "message", str(error))
            raise DeclarationError(f"input of {who} is no JSON Schema: {text}") from error
        return cls(schema=schema)

    @property
    def names(self) -> frozenset[str]:
        """The fields of the input, by their names."""
        properties = self.schema.get("properties")
        return frozenset(properties) if isinstance(properties, Mapping) else frozenset()

    def normalised(self, given: Any) -> dict[str, Any]:
        """The input with its defaults, as it will be stored and run (interactions.md I37).

        Raises ToolRefused `invalid_input`; nobody is asked about such an input (I36.2).
        """
        if self.model is not None and isinstance(given, self.model):
            given = given.model_dump(mode="json")
        if not isinstance(given, Mapping):
            raise _invalid("the input is an object.")
        value = self._of_model(given) if self.model is not None else self._of_schema(given)
        try:
            frozen = snapshot(value, max_depth=MAX_DEPTH)
        except JsonValueError as error:
            raise _invalid(str(error)) from error
        if len(canonical_json(frozen).encode()) > MAX_INPUT:
            raise _invalid(f"the input takes more than {MAX_INPUT // 1024} KiB.")
        plain: dict[str, Any] = thaw(frozen)
        return plain

    def for_function(self, stored: Mapping[str, Any]) -> Any:
        """The stored input in the form in which the author's function takes it."""
        return stored if self.model is None else self.model.model_validate(stored)

    def _of_model(self, given: Mapping[str, Any]) -> Any:
        from pydantic import ValidationError as ModelFault

        try:
            return self.model.model_validate(dict(given)).model_dump(mode="json")
        except ModelFault as error:
            # Neither the value nor an address: they may be secret, and a model reads this.
            told = error.errors(include_url=False, include_input=False, include_context=False)
            words = (f"{_place(one['loc'])}: {one['msg']}" for one in told[:MAX_FAULTS])
            raise _invalid("; ".join(words)) from None

    def _of_schema(self, given: Mapping[str, Any]) -> Any:
        try:
            value = thaw(snapshot(dict(given), max_depth=MAX_DEPTH))
        except JsonValueError as error:
            raise _invalid(str(error)) from error
        value = _filled(self.schema, value)
        try:
            faults = sorted(_Checker(self.schema, registry=Registry()).iter_errors(value), key=str)
        except (Unresolvable, RecursionError) as error:
            raise _invalid(f"its schema cannot be applied: {type(error).__name__}.") from error
        if faults:
            raise _invalid("; ".join(_words(one) for one in faults[:MAX_FAULTS]))
        return value


def _filled(schema: Any, value: Any) -> Any:
    """The value with the schema's defaults for members that are missing, all the way down."""
    if not isinstance(schema, Mapping) or not isinstance(value, dict):
        return value
    properties = schema.get("properties")
    filled = dict(value)
    for name, declared in properties.items() if isinstance(properties, Mapping) else ():
        if not isinstance(declared, Mapping):
            continue
        if name not in filled and "default" in declared:
            filled[name] = thaw(snapshot(declared["default"]))
        if name in filled:
            filled[name] = _filled(declared, filled[name])
    return filled


def _checked(schema: Any) -> None:
    if len(canonical_json(schema)) > MAX_SCHEMA:
        raise ValueError(f"it is longer than {MAX_SCHEMA // 1024} KiB.")
    if schema.get("type", "object") != "object":
        raise ValueError("its type is object.")
    for pattern in _patterns(schema, 0):
        compile_pattern(pattern)
    Draft202012Validator.check_schema(schema)


def _patterns(schema: Any, depth: int) -> Iterator[str]:
    if depth > 2 * MAX_DEPTH:
        raise ValueError("it nests too deeply.")
    if isinstance(schema, dict):
        for keyword in ("$ref", "$dynamicRef"):
            target = schema.get(keyword)
            if isinstance(target, str) and not target.startswith("#"):
                raise ValueError(f"{keyword} leaves it.")
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(schema.get("patternProperties"), dict):
            yield from schema["patternProperties"]
        for inner in schema.values():
            yield from _patterns(inner, depth + 1)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _patterns(inner, depth + 1)


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    # The kernel's matcher takes time in proportion to the text, whatever the pattern.
    if isinstance(value, str) and not compile_pattern(pattern).search(value):
        yield ValidationError("does not match its pattern")


_Checker: Any = extend(  # type: ignore[no-untyped-call]  # untyped in its stubs
    Draft202012Validator, {"pattern": _pattern}
)


def _words(fault: ValidationError) -> str:
    """What is wrong and where, without repeating the value: it may be secret."""
    place = _place(fault.absolute_path)
    match fault.validator:
        case "required":
            wanted: Any = fault.validator_value
            held: Any = fault.instance
            missing = [name for name in wanted if name not in held]
            return f"{place}: {', '.join(missing[:3])} is missing"
        case "additionalProperties":
            known: Any = fault.schema
            here: Any = fault.instance
            odd = [name for name in here if name not in known.get("properties", {})]
            return f"{place}: {', '.join(odd[:3])!s:.100} is not part of it"
        case "type" | "enum" | "const" | "minimum" | "maximum" | "minLength" | "maxLength":
            return f"{place}: {fault.validator} is {canonical_json(fault.validator_value)!s:.200}"
    return f"{place}: it does not fit {fault.validator}"


def _place(path: Any) -> str:
    return "/".join(str(part)[:60] for part in path) or "the input"


def _invalid(text: str) -> ToolRefused:
    return ToolRefused("invalid_input", text[:1_000])
