"""What the text around a line says of it: under an `if`, and saved right after."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

# Parts of the names of functions that write what they are given: `torch.save`, `pickle.dump`, `save_checkpoint`.
_WRITES = ("save", "dump")


class Standing(NamedTuple):
    """What is known of a line."""

    conditional: bool
    """True if it stands under an `if`."""
    saved: bool
    """True if it gives a variable its value, which statements after it in the same block hand on to be written."""


@lru_cache(maxsize=256)
def standing(tree: ast.Module, line: int) -> Standing:
    """Looks at the text around a line; asked for the same one again and again."""
    conditional = any(isinstance(node, ast.If) and _holds(node.body, line) for node in syntax.walk(tree))
    return Standing(conditional, _is_saved(tree, line))


def _holds(block: list[ast.stmt], line: int) -> bool:
    return any(syntax.spans(one, line) for one in block)


def _is_saved(tree: ast.Module, line: int) -> bool:
    for block in _blocks(tree):
        for index, one in enumerate(block):
            if isinstance(one, ast.Assign) and syntax.spans(one, line):
                names = {_owner(target) for target in one.targets} - {""}
                return any(_writes(call, names) for later in block[index + 1 :] for call in syntax.walk(later))
    return False


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in syntax.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if type(block) is list:
                yield block


def _owner(target: ast.expr) -> str:
    """`run.checkpoint` for `run.checkpoint['model']`."""
    return dotted(syntax.whole_of(target))


def _writes(call: ast.AST, names: set[str]) -> bool:
    if not isinstance(call, ast.Call):
        return False
    function = dotted(call.func).rpartition(".")[2].lower()
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    return any(word in function for word in _WRITES) and any(dotted(one) in names for one in given)
