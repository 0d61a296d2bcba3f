"""Tensors that the failing call was given beside another one, as the states of an LSTM: they are where that is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, OperandFact


def given_together(error: ErrorFact, operand: OperandFact) -> list[OperandFact]:
    """`c0` for the `h0` of `lstm(x, (h0, c0))`, and the other entries of a dictionary of an object that are read there.

    None of them is on another device, and none has another kind of number: lengths are to stay on the CPU.
    """
    written = syntax.expression(error.expression)
    beside = _beside(written, operand.path) if written is not None else set()
    owner = _owner(operand.path)
    return [
        one
        for one in dict.fromkeys(error.operands)
        if one.path != operand.path
        and (one.kind, one.devices, one.dtype) == (operand.kind, operand.devices, operand.dtype)
        and one.shape != ()
        and (one.path in beside or (owner and _owner(one.path) == owner))
    ]


def _beside(written: ast.expr, path: str) -> set[str]:
    """What stands in one tuple or list with a variable, as written."""
    rows = (one for one in syntax.walk(written) if isinstance(one, (ast.Tuple, ast.List)))
    texts = ({ast.unparse(part) for part in one.elts if isinstance(part, ast.Name)} for one in rows)
    return next((row for row in texts if path in row), set())


def _owner(path: str) -> str:
    """`self.stats` of `self.stats['mean']`; empty for what is no entry of an attribute."""
    owner, entry, _ = path.partition("[")
    return owner if entry and owner.startswith("self.") and path.endswith("]") else ""
