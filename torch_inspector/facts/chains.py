"""A loss that is made of plain numbers, or in NumPy, and made a tensor again: where its history ends first."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.in_torch import in_torch

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import CutFact

_FORCED = re.compile(r"requires_grad_\(\s*(True)?\s*\)|requires_grad\s*=\s*True")


_IN_WORDS = "stay in PyTorch on this way: a function of torch in the place of each of NumPy, no .numpy()"


class Chain(NamedTuple):
    """A number or an array read from a tensor, and the tensor that is made of such."""

    number: CutFact
    whole: CutFact

    def mended(self, source: str) -> str:
        """Both lines as they keep the history; `source` is the cell of the second."""
        if self.number.kind == "numpy":
            return in_torch(source, self.number.place.line) or f"{_IN_WORDS}, and no {self.whole.text}"
        read, made = _operand(self.number.text), _operand(self.whole.text)
        line = _line(source, self.number.place.line) if self.number.place.cell == self.whole.place.cell else ""
        made = f"torch.stack({made})" if ".append(" in line else made
        also = ", without requires_grad" if _FORCED.search(_line(source, self.whole.place.line)) else ""
        return f"{read}  # in place of {self.number.text}\n{made}  # in place of {self.whole.text}{also}"

    def said(self, source: str, cell: int | None) -> str:
        """What happens in the two lines."""
        forced = " `requires_grad` gives it no history." if _FORCED.search(_line(source, self.whole.place.line)) else ""
        if self.number.kind == "numpy":
            return (
                f"`{self.number.text}` leaves PyTorch, and NumPy keeps no history "
                f"({self.number.place.said_in(cell)}); `{self.whole.text}` ({self.whole.place.said_in(cell)}) makes a "
                f"new tensor from the values.{forced}"
            ).removesuffix(".")
        return (
            f"`{self.number.text}` gives a plain number ({self.number.place.said_in(cell)}), and `{self.whole.text}` "
            f"({self.whole.place.said_in(cell)}) a tensor of such numbers.{forced}"
        ).removesuffix(".")


def chain(cuts: tuple[CutFact, ...]) -> Chain | None:
    """The only number, or the way to NumPy, behind a tensor that is made anew, if another line reads it."""
    if not cuts or cuts[0].kind != "tensor":
        return None
    others = [one for one in cuts[1:] if one.text not in cuts[0].text]
    numbers, arrays = ([one for one in others if one.kind == kind] for kind in ("item", "numpy"))
    if arrays and not numbers and cuts[0].place != arrays[0].place:
        return Chain(next((one for one in arrays if one.text.endswith(".numpy()")), arrays[0]), cuts[0])
    if len(numbers) != 1:
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
