"""What mends a line that loses the history of a tensor, in the words of the line where that can be said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torch_inspector.facts.in_torch import in_torch

if TYPE_CHECKING:
    from torch_inspector.facts.graphs import CutFact
    from torch_inspector.facts.run import Run

# `loss` in `loss.item()` and in `float(loss)`.
_NUMBER = re.compile(r"(?P<method>[^….][^…]*)\.item\(\)|float\((?P<given>[\w.]+)\)")
_LEFT = "leave the values as they are between model and loss"
_FIXES = {
    "argmax": "compute the loss from the scores or from softmax; keep argmax for measuring",
    "compare": "compute the loss from the scores or from sigmoid; keep the threshold for measuring",
    "whole": "compute the loss from the scores; round only for measuring",
    "no_grad": "compute the training pass outside it",
    "numpy": "stay in PyTorch on this way: a function of torch in the place of each of NumPy, and no .numpy()",
    "tensor": "use the tensor itself, or torch.stack for several",
}


def uncut(run: Run, cut: CutFact | None, cell: int | None) -> str:
    """The mended line, or words for it; `cell` is the one that is spoken of."""
    if cut is None:
        return _LEFT
    if cut.text.startswith("@"):
        return f"take {cut.text} away from the function  # {cut.place.said_in(cell)}"
    call = _NUMBER.fullmatch(cut.text)
    if call is not None and cut.kind == "item":
        return f"{call['method'] or call['given']}  # in place of {cut.text}"
    kind = "numpy" if cut.text.startswith("torch.from_numpy(") else cut.kind
    stays = in_torch(run.source_of(cut.place.cell), cut.place.line) if kind == "numpy" else ""
    return stays or _FIXES.get(kind, _LEFT)
