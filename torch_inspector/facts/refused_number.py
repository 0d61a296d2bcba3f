"""The number that float16 refused to take, as a text writes it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact
    from torch_inspector.facts.run import Run

_BIG = re.compile(r"-?(\b\d+(\.\d*)?e\+?([5-9]|\d\d)\b|\b\d{5,}(\.\d*)?\b)", re.IGNORECASE)


def refused_number(run: Run, error: ErrorFact, text: str) -> str:
    """The number in the call of an error that float16 refused, as written."""
    line = "".join(run.source_of(error.place.cell).splitlines()[(error.place.line or 1) - 1 :][:1])
    tree = syntax.parse(text)
    call = next((node for node in syntax.walk(tree) if isinstance(node, ast.Call)), None) if tree is not None else None
    literals = [found[0] for found in _BIG.finditer(line)]
    if len(literals) == 1:
        return literals[0]
    last = call.args[-1] if call is not None and call.args else None
    return ast.unparse(last) if isinstance(last, (ast.Name, ast.Attribute)) else "the number"
