from __future__ import annotations

import subprocess
import sys
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from runs.kernel.sources import code_digest

_numbers = count()

AS_WRITTEN = """
checks = [lambda c: c.a, lambda c: c.b, lambda c: (lambda d: d.a)]
def step(c):
    return   1   # one
async def later(c): return 2
class Check:
    def __call__(self, c): return 3
    def method(self, c): return 4
def make():
    def inner(c): return 5
    return inner
"""
FORMATTED = """
# A comment above.


checks = [
    lambda c: c.a,
    lambda c: c.b,
    lambda c: (lambda d: d.a),
]


def step(c):
    return 1


async def later(c):
    return 2


class Check:
    def __call__(self, c):
        return 3

    def method(self, c):
        return 4


def make():
    def inner(c):
        return 5

    return inner
"""


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def loaded(text: str) -> ModuleType:
        path = tmp_path / f"flow{next(_numbers)}.py"
        path.write_text(text)
        module = ModuleType("flow")
        module.__file__ = str(path)
        exec(compile(text, str(path), "exec"), module.__dict__)
        return module

    return loaded


def functions(module: Any) -> list[Any]:
    made = module.Check()
    return [*module.checks, module.step, module.later, made.method, module.make()]


def test_formatting_and_comments_change_nothing(load: Any) -> None:
    before, after = load(AS_WRITTEN), load(FORMATTED)

    assert list(map(code_digest, functions(before))) == list(map(code_digest, functions(after)))


def test_different_functions_differ_even_on_one_line(load: Any) -> None:
    digests = list(map(code_digest, functions(load(AS_WRITTEN))))

    assert len(set(digests)) == len(digests)


def test_a_changed_body_is_another_function(load: Any) -> None:
    before, after = load(AS_WRITTEN), load(AS_WRITTEN.replace("return   1", "return 7"))

    assert code_digest(before.step) != code_digest(after.step)
    assert code_digest(before.later) == code_digest(after.later)


def test_bound_arguments_belong_to_the_identity(load: Any) -> None:
    step = load(AS_WRITTEN).step

    assert code_digest(partial(step, 1)) == code_digest(partial(step, 1))
    assert code_digest(partial(step, 1)) != code_digest(partial(step, 2))
    assert code_digest(partial(step, k=object())) == code_digest(partial(step, k=object()))


def test_functions_without_source_have_an_identity_too() -> None:
    made: dict[str, Any] = {}
    exec("one = lambda x: x + 1\ntwo = lambda x: x + 2", made)

    assert code_digest(made["one"]) != code_digest(made["two"])
    assert code_digest(len) != code_digest(print)


def test_identity_is_the_same_in_every_process() -> None:
    script = (
        "from runs.kernel.sources import code_digest\n"
        "made = {}\n"
        "exec(\"f = lambda x: x in {'a', 'b', 'c', ('d', 'e')}\", made)\n"
        "print(code_digest(made['f']))\n"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(seen) == 1
