"""A loss scaler that is switched off, by `enabled=False` or for want of a device: it hands every loss on as it is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run


class IdleScaler(NamedTuple):
    """The scaler as the code calls it, and how it is made so that it scales."""

    name: str
    mended: str


def switched_off(run: Run, device: str) -> IdleScaler | None:
    """The scaler whose `step` was called while it was switched off; None if there was none.

    Args:
        run: The cell.
        device: Where the loss is: `cuda`.
    """
    counts = [one for one in run.trace.counts if one.kind == "scaler.off"]
    name = _stepped(run.source_of(counts[0].place.cell), counts[0].place.line or 0) if counts else ""
    if not name:
        return None
    texts = [past.cell.source for past in (run, *reversed(run.earlier))]
    others = next((text for one in texts if (text := _others(one, name)) is not None), "")
    return IdleScaler(name, f"{name} = torch.amp.GradScaler({device!r}{others})  # enabled, where float16 is")


def _stepped(source: str, line: int) -> str:
    """`self.scaler` of `self.scaler.step(opt)`."""
    tree = syntax.parse(source)
    for node in syntax.walk(tree) if tree is not None else ():
        method = node.func if isinstance(node, ast.Call) and node.lineno == line else None
        if isinstance(method, ast.Attribute) and method.attr == "step":
            return ast.unparse(method.value)
    return ""


def _others(source: str, name: str) -> str | None:
    """What the scaler was made with beside device and `enabled`: `, init_scale=1024`; None if that is not known."""
    tree = syntax.parse(source)
    for node in syntax.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets) and _is_scaler(node.value):
            given = node.value.keywords if isinstance(node.value, ast.Call) else []
            kept = [one for one in given if one.arg not in ("device", "enabled", None)]
            return "".join(f", {one.arg}={ast.unparse(one.value)}" for one in kept)
    return None


def _is_scaler(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and syntax.last_part(node.func) == "GradScaler"
