"""A division by a spread, `(x - mean) / std`, which is 0 for a column of equal values."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts.replaced import in_statement
from torch_inspector.facts.sole import called, sole

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import ExtremeFact

# A spread along an axis in torch's words; arrays and tables have no `clamp_min`.
_SPREADS = re.compile(r"\.std\((dim=)?-?\d|torch\.std(_mean)?\(")
_ARRAYS = re.compile(r"\b(np|pd|numpy|pandas)\b")


def standardised(run: Run, origin: ExtremeFact | None) -> str:
    """The division by a spread, where a column of equal values has made nan of 0 / 0."""
    if origin is None or origin.computed or origin.inf_count or origin.negative_inf_count:
        return ""
    sources = [one.cell.source for one in (run, *run.earlier)]
    one = sole(run, _is_over_spread)
    if one is None or not any(_SPREADS.search(text) for text in sources) or any(map(_ARRAYS.search, sources)):
        return ""
    divided = ast.parse(one.text, mode="eval").body
    top, by = (ast.unparse(divided.left), ast.unparse(divided.right)) if isinstance(divided, ast.BinOp) else ("", "")
    remark = "a column of equal values has the spread 0; or clean the data, if it holds nan itself"
    return f"{in_statement(run, one.place, one.text, f'({top}) / {by}.clamp_min(1e-8)')}  # {remark}"


def _is_over_spread(node: ast.AST) -> bool:
    """True for `(x - mean) / std`, also with `self.std` and `x.std(0)`."""
    by = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else None
    centred = isinstance(node, ast.BinOp) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Sub)
    named = by.attr if isinstance(by, ast.Attribute) else by.id if isinstance(by, ast.Name) else ""
    return centred and (called(by) == "std" if isinstance(by, ast.Call) else "std" in named or named == "sigma")
