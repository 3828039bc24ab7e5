"""Whether a text matches a schema's pattern, in time that grows with the text and no faster.

A pattern comes from an author and the text from a stranger, and the standard library's matcher can
be made to run for years on thirty characters. Here the pattern becomes a set of states that all
advance together, one character at a time, so nothing is tried twice. What that way of matching
cannot do is refused when the gate is made: look-around, back-references, atomic groups, flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

# The standard library's own reader of pattern text. It is private, so it is used here only.
from re import _parser
from typing import Any

MAX_PATTERN_LENGTH = 1_000
MAX_STATES = 4_000
# States times characters: about a second at worst.
MAX_WORK = 2_000_000


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_NOT_DIGIT": lambda char: not char.isdecimal(),
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_NOT_SPACE": lambda char: not char.isspace(),
    "CATEGORY_WORD": _is_word,
    "CATEGORY_NOT_WORD": lambda char: not _is_word(char),
}


class PatternError(ValueError):
    """The pattern, or this text with this pattern, cannot be checked in bounded time."""


@dataclass(slots=True)
class _State:
    """One place in the pattern: it eats a character, forks, tests a position, or ends."""

    eats: Callable[[str], bool] | None = None
    position: str = ""
    next: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern ready to search with."""

    states: tuple[_State, ...]
    start: int

    def search(self, text: str) -> bool:
        """Whether the pattern occurs anywhere in the text; `$` is the very end of it."""
        if len(text) * len(self.states) > MAX_WORK:
            raise PatternError(f"text of {len(text)} characters is too long for its pattern")
        alive: set[int] = set()
        for index in range(len(text) + 1):
            reached = self._reach(alive | {self.start}, text, index)
            if 0 in reached:
                return True
            if index < len(text):
                alive = self._advance(reached, text[index])
        return False

    def _reach(self, begin: set[int], text: str, index: int) -> set[int]:
        """Every state to be in before the character at index is read."""
        reached: set[int] = set()
        todo = list(begin)
        while todo:
            number = todo.pop()
            if number in reached:
                continue
            reached.add(number)
            state = self.states[number]
            if state.eats is None and _is_at(state.position, text, index):
                todo.extend(state.next)
        return reached

    def _advance(self, reached: set[int], char: str) -> set[int]:
        after: set[int] = set()
        for number in reached:
            state = self.states[number]
            if state.eats is not None and state.eats(char):
                after.update(state.next)
        return after


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Pattern:
    """Read a pattern, or raise PatternError saying what about it cannot be used."""
    if len(text) > MAX_PATTERN_LENGTH:
        raise PatternError(f"the pattern is longer than {MAX_PATTERN_LENGTH} characters")
    try:
        tree = _parser.parse(text)
        if tree.state.flags & ~re.UNICODE:
            raise PatternError("the pattern sets flags inside its text")
        builder = _Builder()
        start = builder.sequence(tree, 0)
    except (re.error, OverflowError) as error:
        raise PatternError(f"the pattern does not compile ({error})") from error
    except RecursionError as error:
        raise PatternError("the pattern nests too deeply") from error
    return Pattern(tuple(builder.states), start)


class _Builder:
    """Turns the parsed pattern into states, from its end to its start; state 0 is the end."""

    def __init__(self) -> None:
        self.states: list[_State] = [_State(position="NEVER")]

    def add(self, state: _State) -> int:
        if len(self.states) >= MAX_STATES:
            raise PatternError("the pattern repeats too much to be checked")
        self.states.append(state)
        return len(self.states) - 1

    def sequence(self, items: Any, after: int) -> int:
        for operation, argument in reversed(list(items)):
            after = self.item(str(operation), argument, after)
        return after

    def item(self, operation: str, argument: Any, after: int) -> int:
        match operation:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                return self.add(_State(eats=_eater(operation, argument), next=[after]))
            case "AT":
                return self.add(_State(position=str(argument), next=[after]))
            case "BRANCH":
                return self.add(_State(next=[self.sequence(way, after) for way in argument[1]]))
            case "SUBPATTERN" if not argument[1] and not argument[2]:
                return self.sequence(argument[3], after)
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, body = argument
                return self.repeat(least, most, body, after)
        name = operation.lower().replace("_", " ")
        raise PatternError(f"the pattern uses {name}, which has no bounded check")

    def repeat(self, least: int, most: Any, body: Any, after: int) -> int:
        if str(most) == "MAXREPEAT":
            loop = self.add(_State())
            self.states[loop].next = [self.sequence(body, loop), after]
            after = loop
        else:
            end = after
            for _ in range(int(most) - least):
                after = self.add(_State(next=[self.sequence(body, after), end]))
        for _ in range(least):
            before = self.sequence(body, after)
            if before == after:
                break
            after = before
        return after


def _eater(operation: str, argument: Any) -> Callable[[str], bool]:
    match operation:
        case "ANY":
            return lambda char: char != "\n"
        case "LITERAL":
            return chr(argument).__eq__
        case "NOT_LITERAL":
            return chr(argument).__ne__
    wanted = [(str(kind), value) for kind, value in argument]
    negated = bool(wanted) and wanted[0][0] == "NEGATE"
    tests = [_member(kind, value) for kind, value in wanted[negated:]]
    return lambda char: any(test(char) for test in tests) != negated


def _member(kind: str, value: Any) -> Callable[[str], bool]:
    match kind:
        case "LITERAL":
            return chr(value).__eq__
        case "RANGE":
            low, high = chr(value[0]), chr(value[1])
            return lambda char: low <= char <= high
    return _CATEGORIES[str(value)]


def _is_at(position: str, text: str, index: int) -> bool:
    match position:
        case "":
            return True
        case "AT_BEGINNING" | "AT_BEGINNING_STRING":
            return index == 0
        case "AT_END" | "AT_END_STRING":
            return index == len(text)
        case "AT_BOUNDARY" | "AT_NON_BOUNDARY":
            before = index > 0 and _is_word(text[index - 1])
            behind = index < len(text) and _is_word(text[index])
            return (before != behind) == (position == "AT_BOUNDARY")
    return False
