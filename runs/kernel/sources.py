"""The identity of a function: its parsed source, so that formatting changes nothing (D19)."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import CodeType
from typing import Any

from runs.kernel.jsonable import digest_hex


def code_digest(fn: Callable[..., Any]) -> str:
    """Hex SHA-256 over name and source of `fn`; bytecode where there is no source (R234)."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    named = fn if hasattr(fn, "__qualname__") else type(fn)
    where = f"{getattr(named, '__module__', '')}.{named.__qualname__}"
    return digest_hex({"name": where, "source": _source(named)})


def _source(named: Any) -> str:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(named)))
    except (OSError, TypeError, SyntaxError):
        code = getattr(named, "__code__", None)
        return _bytecode(code) if isinstance(code, CodeType) else ""
    return ast.dump(tree, annotate_fields=False)


def _bytecode(code: CodeType) -> str:
    inner = [_bytecode(item) for item in code.co_consts if isinstance(item, CodeType)]
    plain = [repr(item) for item in code.co_consts if not isinstance(item, CodeType)]
    return "|".join([code.co_code.hex(), *code.co_names, *plain, *inner])
