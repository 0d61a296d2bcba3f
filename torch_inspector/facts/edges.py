"""An operation kept away from the numbers that it cannot take, in the user's own names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_inspector.facts.by_name import probabilities_kept, softmax_kept
from torch_inspector.facts.replaced import instead
from torch_inspector.facts.sole import called, operand, sole

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run
    from torch_inspector.facts.values import OperationFact

_CLAMPED = "{}.clamp_min(1e-12).{}()"
_INSIDE = "{}.clamp(-1 + 1e-6, 1 - 1e-6).{}()"
# What zeros are kept from; negative numbers are still negative when a little is added.
_ADDED = "({} + 1e-12).{}()"
_KEPT = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt"), _CLAMPED),
    "exp": "{}.clamp_max(10).{}()",
    "log1p": "{}.clamp_min(-0.999).{}()",
    **dict.fromkeys(("acos", "asin", "atanh"), _INSIDE),
}


def kept_from_edge(run: Run, operation: OperationFact | None) -> tuple[Place, str] | None:
    """The line of an operation and what it should be there, if the texts have one such operation only."""
    if operation is None or operation.name not in _KEPT:
        return None
    by_name = probabilities_kept(run) if operation.name == "log" else None
    by_name = by_name or (softmax_kept(run) if operation.name in ("exp", "log") else None)
    if by_name is not None:
        return by_name
    written = sole(run, lambda node: called(node) == operation.name)
    given = operand(written.text) if written is not None else ""
    if written is None or not given:
        return None
    form = _ADDED if operation.name.endswith("sqrt") and operation.cause == "zeros" else _KEPT[operation.name]
    return written.place, instead(run, written.place, written.text, form.format(given, operation.name))
