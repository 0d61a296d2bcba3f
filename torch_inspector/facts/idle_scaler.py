"""Loss scalers that do nothing: switched off, by `enabled=False` or for want of a device, or made and never used."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
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


def unused(run: Run, place: Place) -> str:
    """The scaler that the texts make, and that the code at a place can name: `self.scaler`; empty if not just one."""
    found = set()
    for past in {one.cell.source: one for one in (*run.earlier, run)}.values():
        tree = syntax.parse(past.cell.source)
        for node in syntax.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Assign) and _is_scaler(node.value):
                own = past.cell.number == place.cell and tree is not None
                seen = own and tree is not None and _same_class(tree, node.lineno, place.line or 0)
                inside = tree is not None and not isinstance(syntax.scope_at(tree, node.lineno), ast.Module)
                found |= {_named(one, seen=seen, inside=inside) for one in node.targets}
    near = {one for one in found if one.startswith("self.")} or found
    return near.pop() if len(near) == 1 else ""


def _named(target: ast.expr, *, seen: bool, inside: bool) -> str:
    text = ast.unparse(target)
    if text.startswith("self."):
        return text if seen else ""
    return text if isinstance(target, ast.Name) and not inside else ""


def _same_class(tree: ast.Module, one: int, other: int) -> bool:
    kinds = (node for node in syntax.walk(tree) if isinstance(node, ast.ClassDef))
    return any(syntax.spans(kind, one) and syntax.spans(kind, other) for kind in kinds)


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
