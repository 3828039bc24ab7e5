"""What is wrong with an answer, in words for the person who typed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from jsonschema.exceptions import ValidationError

from runs.kernel.jsonable import canonical_json

_TYPES: Final = {
    "string": "text",
    "boolean": "yes or no",
    "number": "a number",
    "integer": "a whole number",
    "object": "a JSON object",
    "array": "a list",
    "null": "empty",
}
_FORMATS: Final = {
    "date": "a date such as 2026-03-31",
    "date-time": "a time such as 2026-03-31T14:00:00Z",
    "email": "an e-mail address",
    "uri": "a link such as https://example.com/page",
}
_MAX_SHOWN: Final = 200


def field_and_words(error: ValidationError) -> tuple[str, str]:
    """The top-level field of the fault, and what has to change."""
    path = [str(key) for key in error.absolute_path]
    words = _words(error)
    if error.validator == "required":
        wanted: Any = error.validator_value
        missing = [name for name in wanted if name not in cast("Any", error.instance)]
        # One error per missing name comes in; its own name stands in quotes at the front.
        named = [name for name in missing if error.message.startswith(repr(name))]
        path += (named or missing)[:1]
    if not path:
        return "", words
    inner = "/".join(path[1:])
    return path[0][:_MAX_SHOWN], f"{inner[:_MAX_SHOWN]}: {words}" if inner else words


def _words(error: ValidationError) -> str:
    keyword = str(error.validator)
    wanted: Any = error.validator_value
    plain = _PLAIN.get(keyword)
    if plain is not None:
        return plain
    if keyword in _COUNTED:
        many, few = _COUNTED[keyword], _COUNTED[keyword].removesuffix("s")
        return f"{many if wanted != 1 else few}.".replace("N", str(wanted))
    match keyword:
        case "type":
            names = [wanted] if isinstance(wanted, str) else list(wanted)
            return f"This has to be {' or '.join(_TYPES.get(name, str(name)) for name in names)}."
        case "enum":
            return f"This has to be one of: {_shown(wanted)}."
        case "const":
            return f"This has to be {_shown([wanted])}."
        case "format":
            return f"This has to be {_FORMATS.get(str(wanted), str(wanted))}."
        case "pattern":
            return f"This has to match the pattern {str(wanted)[:_MAX_SHOWN]}."
        case "dependentRequired":
            return "Another field is needed beside this one."
    return f"This does not fit the rule “{keyword}”."


def _shown(values: Any) -> str:
    texts = [value if isinstance(value, str) else canonical_json(value) for value in values]
    listed = ", ".join(texts)
    return listed if len(listed) <= _MAX_SHOWN else f"{listed[:_MAX_SHOWN]}…"


_PLAIN: Final[Mapping[str, str]] = {
    "required": "This is required.",
    "additionalProperties": "The question does not ask for this.",
    "uniqueItems": "Nothing may be listed twice.",
    "anyOf": "This fits none of the forms it may have.",
    "oneOf": "This has to fit exactly one of the forms it may have.",
    "not": "This is one of the things it must not be.",
    "contains": "What this has to contain is missing.",
    "if": "This does not fit what the rest of the answer requires.",
    "propertyNames": "This has a name that is not allowed.",
}
_COUNTED: Final[Mapping[str, str]] = {
    "minLength": "This has to have at least N characters",
    "maxLength": "This can have at most N characters",
    "minItems": "This has to have at least N items",
    "maxItems": "This can have at most N items",
    "minProperties": "This has to have at least N fields",
    "maxProperties": "This can have at most N fields",
    "minimum": "This has to be N or more",
    "maximum": "This can be N at most",
    "exclusiveMinimum": "This has to be more than N",
    "exclusiveMaximum": "This has to be less than N",
    "multipleOf": "This has to be a multiple of N",
}
