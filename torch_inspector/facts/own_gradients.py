"""Programs that change gradients themselves, in the text of a cell or in a function that it calls."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.gradient_hooks import scaled_by_hooks
from torch_inspector.facts.gradient_names import scales_gradients

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_CHANGES = re.compile(r"\.grad\s*(/=|\*=|=)|\.grad(\.data)?\.(div_|mul_|copy_)|_foreach_(div|mul)_")
# A function that calls one that calls one.
_DEEP = 3


def changes_gradients(run: Run, cell: int | None) -> bool:
    """True if the text of a cell gives gradients other values, or names a function of the notebook that does.

    Also where any text so far has hooks that do.
    """
    source = run.source_of(cell)
    texts = tuple(dict.fromkeys(one.cell.source for one in (*run.earlier, run)))
    changing = _changing(texts)
    tree = syntax.parse(source)
    return (
        _CHANGES.search(source) is not None
        or bool(_names(source) & changing)
        or (tree is not None and scales_gradients(tree, functions=_given(texts)))
        or scaled_by_hooks(texts)
    )


@lru_cache(maxsize=2)
def _changing(texts: tuple[str, ...]) -> set[str]:
    """Names of functions that do, gathered once for a run."""
    bodies: dict[str, list[str]] = {}
    found, given = set[str](), _given(texts)
    some = any(".grad" in text or _CHANGES.search(text) for text in texts)
    for text in texts if some else ():
        tree = syntax.parse(text)
        for one in syntax.functions_of(tree) if tree is not None else ():
            bodies.setdefault(one.name, []).append(_body(text, one))
            found |= {one.name} if scales_gradients(one, functions=given) else set()
    found |= {name for name, own in bodies.items() if any(_CHANGES.search(body) for body in own)}
    names = {name: set[str]().union(*map(_names, own)) for name, own in bodies.items()}
    for _ in range(_DEEP):
        found |= {name for name, named in names.items() if named & found}
    return found


@lru_cache(maxsize=2)
def _given(texts: tuple[str, ...]) -> frozenset[str]:
    """Names of functions that scale what they are given."""
    trees = (syntax.parse(text) for text in texts if "def " in text)
    functions = [one for tree in trees if tree is not None for one in syntax.functions_of(tree)]
    return frozenset(one.name for one in functions if scales_gradients(one, syntax.parameters_of(one)))


def _body(text: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Its lines without the first: its own name is no call."""
    return "\n".join(text.splitlines()[function.lineno : function.end_lineno])


def _names(text: str) -> set[str]:
    """What a text calls, or hands on as a function."""
    return set(re.findall(r"(?<!def )\b[^\W\d]\w*", text))
