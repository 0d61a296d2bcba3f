"""A softmax without `dim`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from torch_inspector.facts import ExpressionFact, Run, Shape, instead, syntax
from torch_inspector.facts.added_along import added_along
from torch_inspector.facts.implied_axes import implied_axis
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="hint", yields_to=("softmax-over-batch",))
def check(run: Run) -> Iterator[Finding]:
    """Finds calls of `F.softmax` and layers `nn.Softmax()` that leave the axis to torch."""
    for fact in run.expressions("unnamed-axis"):
        yield _finding(run, fact)


def _finding(run: Run, fact: ExpressionFact) -> Finding:
    shape = fact.shapes[0] if fact.shapes else None
    if shape:
        axis = implied_axis(len(shape))
        what = f"torch takes dim {axis} of {shape}, of size {shape[axis]}"
    else:
        what = "torch takes dim 0 for tensors with 1 or 3 axes, dim 1 for 2 or 4"
    graver = shape is not None and len(shape) == 3  # noqa: PLR2004
    return Finding(
        message=f"`{fact.text}` names no dim: {what}.",
        subject=fact.target or (fact.names[0] if fact.names else ""),
        fix=_fix(run, fact, shape),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(Evidence("shape", str(shape)),) if shape else (),
        severity="warning" if graver else "",
    )


def _fix(run: Run, fact: ExpressionFact, shape: Shape | None) -> str:
    """The axis that is meant, where that is known; else those that it may be."""
    if shape is None:
        return _of_unknown(run, fact)
    if len(shape) <= 2:  # noqa: PLR2004
        return _along(run, fact, -1, "the last axis, or the one that is meant")
    axis = added_along(run, fact.place, fact.target, len(shape))
    if axis is not None:
        return _along(run, fact, axis, f"the axis along which the text adds up what `{fact.target}` multiplies")
    taken = f"dim={implied_axis(len(shape))} is what torch takes now"
    # The last axis of scores of steps (batch, steps, 1) has one number, of which a softmax is 1.
    if len(shape) == 3 and shape[-1] == 1:  # noqa: PLR2004
        return f"# {_named(fact, axis=1)} for the steps of (batch, steps, 1); {taken}, right where steps come first"
    return f"# {_named(fact, axis=-1)} for classes, or the keys of an attention, in the last axis; {taken}"


def _of_unknown(run: Run, fact: ExpressionFact) -> str:
    """The same where nobody knows the shape: behind a layer with several outputs, it is a softmax of classes."""
    if _follows_classes(run, fact):
        return _along(run, fact, -1, "along the classes")
    others = "dim=1 for (batch, classes, …), and for the steps of (batch, steps, 1)"
    return f"# {_named(fact, axis=-1)} for classes in the last axis; {others}"


def _follows_classes(run: Run, fact: ExpressionFact) -> bool:
    """True for `nn.Sequential(…, nn.Linear(8, 3), nn.Softmax())`, whatever the samples are."""
    tree = syntax.parse(run.source_of(fact.place.cell))
    calls = (node for node in syntax.walk(tree) if isinstance(node, ast.Call)) if tree is not None else ()
    pairs = ((one, other) for call in calls for one, other in pairwise(call.args) if other.lineno == fact.place.line)
    return any(ast.unparse(other) == fact.text and _gives_classes(one) for one, other in pairs)


def _gives_classes(node: ast.expr) -> bool:
    """True for a linear layer that is not told to have one output."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] not in ("Linear", "LazyLinear"):
        return False
    named = [one.value for one in node.keywords if one.arg == "out_features"]
    last = next(iter(named or node.args[:2][-1:]), None)
    return isinstance(last, ast.Constant) and type(last.value) is int and last.value > 1


def _along(run: Run, fact: ExpressionFact, axis: int, remark: str) -> str:
    return instead(run, fact.place, fact.text, _named(fact, axis=axis), remark)


def _named(fact: ExpressionFact, *, axis: int) -> str:
    return f"{fact.text[:-1]}{', ' if fact.names else ''}dim={axis})"
