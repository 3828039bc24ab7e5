"""The identity of a function: its parsed source, so that formatting changes nothing (D19)."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any

from runs.kernel.jsonable import JSONValue, JsonValueError, digest_hex, snapshot

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def code_digest(fn: Callable[..., Any]) -> str:
    """Hex SHA-256 over name and source of `fn`; bytecode where there is no source (R234)."""
    bound: list[JSONValue] = []
    while isinstance(fn, functools.partial):
        bound += [_plain(fn.args), _plain(fn.keywords)]
        fn = fn.func
    fn = inspect.unwrap(getattr(fn, "__func__", fn))
    named: Any = fn if hasattr(fn, "__qualname__") else type(fn)
    identity: dict[str, JSONValue] = {
        "name": f"{getattr(named, '__module__', '')}.{named.__qualname__}",
        "source": _source(named),
    }
    if bound:
        identity["bound"] = bound
    return digest_hex(identity)


def _plain(value: Any) -> JSONValue:
    """Bound arguments as far as they are JSON; of anything else only the type counts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    try:
        return snapshot(value)
    except JsonValueError:
        return code_digest(value) if inspect.isroutine(value) else type(value).__qualname__


def _source(named: Any) -> str:
    code = getattr(named, "__code__", None)
    if isinstance(code, CodeType):
        return _source_of(code)
    try:
        lines, _ = inspect.findsource(named)
        found = _class_in(_parsed("".join(lines)), named.__qualname__)
    except (OSError, TypeError, SyntaxError):
        found = None
    return "" if found is None else ast.dump(found, annotate_fields=False)


@functools.lru_cache(maxsize=1024)
def _source_of(code: CodeType) -> str:
    try:
        lines, _ = inspect.findsource(code)
        found = _function_in(_parsed("".join(lines)), code)
    except (OSError, SyntaxError):
        found = None
    return _bytecode(code) if found is None else ast.dump(found, annotate_fields=False)


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _class_in(tree: ast.Module, qualname: str) -> ast.AST | None:
    body: ast.AST = tree
    for name in qualname.replace(".<locals>", "").split("."):
        inner = (
            node
            for node in ast.iter_child_nodes(body)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        )
        body = next((node for node in inner if node.name == name), tree)
    return body if isinstance(body, ast.ClassDef) else None


def _function_in(tree: ast.Module, code: CodeType) -> _Function | None:
    """The function whose code this is; of several on one line the one that spans its body."""
    starting = [node for node in _functions(tree) if _first_line(node) == code.co_firstlineno]
    named = [node for node in starting if getattr(node, "name", "<lambda>") == code.co_name]
    spans = [position for position in code.co_positions() if None not in position]
    body = [node for node in named if any(_starts_in(node, span) for span in spans)]
    # Of nested ones the innermost holds only its own body.
    return min(body or named, key=_extent, default=None)


def _functions(tree: ast.Module) -> Iterator[_Function]:
    return (node for node in ast.walk(tree) if isinstance(node, _Function))


def _first_line(node: _Function) -> int:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _starts_in(node: _Function, span: tuple[int | None, ...]) -> bool:
    """Whether the instruction's text is exactly the lambda's body, or lies in a function."""
    if not isinstance(node, ast.Lambda):
        return True
    at = node.body
    return span == (at.lineno, at.end_lineno, at.col_offset, at.end_col_offset)


def _extent(node: _Function) -> tuple[int, int]:
    lines = (node.end_lineno or node.lineno) - node.lineno
    return (lines, (node.end_col_offset or 0) - node.col_offset)


def _bytecode(code: CodeType) -> str:
    inner = [_bytecode(item) for item in code.co_consts if isinstance(item, CodeType)]
    plain = [_constant(item) for item in code.co_consts if not isinstance(item, CodeType)]
    return "|".join([code.co_code.hex(), *code.co_names, *plain, *inner])


def _constant(value: object) -> str:
    """A constant as text; a set has no order of its own that another process would share."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_constant, value))})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    return repr(value)
