"""A loss that is added up from plain numbers and made a tensor again: where its history ends first."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import CutFact

_FORCED = re.compile(r"requires_grad_\(\s*(True)?\s*\)|requires_grad\s*=\s*True")


class Chain(NamedTuple):
    """A number read from a tensor, and the tensor that is made of such numbers."""

    number: CutFact
    whole: CutFact

    def mended(self, source: str) -> str:
        """Both lines as they keep the history; `source` is the cell of the second."""
        read, made = _operand(self.number.text), _operand(self.whole.text)
        line = _line(source, self.number.place.line) if self.number.place.cell == self.whole.place.cell else ""
        made = f"torch.stack({made})" if ".append(" in line else made
        also = ", without requires_grad" if _FORCED.search(_line(source, self.whole.place.line)) else ""
        return f"{read}  # in place of {self.number.text}\n{made}  # in place of {self.whole.text}{also}"

    def said(self, source: str, cell: int | None) -> str:
        """What happens in the two lines."""
        forced = " `requires_grad` gives it no history." if _FORCED.search(_line(source, self.whole.place.line)) else ""
        return (
            f"`{self.number.text}` gives a plain number ({self.number.place.said_in(cell)}), and `{self.whole.text}` "
            f"({self.whole.place.said_in(cell)}) a tensor of such numbers.{forced}"
        ).removesuffix(".")


def chain(cuts: tuple[CutFact, ...]) -> Chain | None:
    """The only number behind a tensor that is made anew, if another line reads it."""
    numbers = [one for one in cuts[1:] if one.kind == "item" and one.text not in cuts[0].text]
    if not numbers or len(numbers) != 1 or cuts[0].kind != "tensor":
        return None
    found = Chain(numbers[0], cuts[0])
    return found if _operand(found.number.text) and _operand(found.whole.text) else None


def _operand(text: str) -> str:
    """`loss` in `loss.item()`, `float(loss)` and `torch.tensor(loss)`; empty for other texts."""
    node = syntax.expression(text)
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        return ast.unparse(node.func.value)
    return ast.unparse(node.args[0]) if node.args and isinstance(node.args[0], (ast.Name, ast.BinOp)) else ""


def _line(source: str, line: int | None) -> str:
    lines = source.splitlines()
    return lines[line - 1] if line is not None and line <= len(lines) else ""
