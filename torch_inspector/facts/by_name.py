"""Losses written by hand that torch has a function for: a softmax of exponentials, one of two logarithms."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.sole import Written, called, operand, written

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

_PAIR = 2


def probabilities_kept(run: Run) -> tuple[Place, str] | None:
    """Where the only logarithms are `log(p)` and `log(1 - p)`, and p kept away from both ends."""
    logs = written(run, lambda node: called(node) == "log")
    given = [operand(one.text) for one in logs]
    name = next((one for one in given if one.isidentifier()), "")
    if len(logs) != _PAIR or sorted(given) != sorted([name, f"(1 - {name})"]):
        return None
    target = _target_of(run, logs[given.index(name)])
    usual = f", or F.binary_cross_entropy({name}, {target})" if target else ""
    return logs[0].place, f"{name} = {name}.clamp(1e-6, 1 - 1e-6)  # before the logarithms{usual}"


def _target_of(run: Run, log: Written) -> str:
    """The variable that the logarithm is multiplied by."""
    products = written(run, lambda node: isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult))
    for one in products:
        node = ast.parse(one.text, mode="eval").body
        sides = [ast.unparse(side) for side in (node.left, node.right)] if isinstance(node, ast.BinOp) else []
        others = [side for side in sides if side != log.text]
        if len(others) == 1 and others[0].isidentifier():
            return others[0]
    return ""


def softmax_kept(run: Run) -> tuple[Place, str] | None:
    """Where the only exponentials are divided by their own sum: the softmax that never overflows."""
    exps = written(run, lambda node: called(node) == "exp")
    scores = operand(exps[0].text) if len(exps) == 1 else ""
    shares = [one for one in map(_share, written(run, syntax.is_division)) if one[1]] if scores else []
    if len(shares) != 1:
        return None
    top, axis = shares[0]
    stores = _stores(run)
    if not axis or (top != exps[0].text and (top, exps[0].text) not in stores):
        return None
    logs = written(run, lambda node: called(node) == "log")
    if not logs:
        return exps[0].place, f"torch.softmax({scores}, {axis})  # in place of exp and sum"
    target, picked = _picked(logs[0])
    name = next((name for name, value in stores if value.startswith(f"{top} / ")), "") or "p"
    usual = f"F.cross_entropy({scores}, {picked})" if picked else f"F.cross_entropy of {scores}"
    return exps[0].place, (
        f"log_{name} = torch.log_softmax({scores}, {axis})  # and {target.replace(name, f'log_{name}', 1)} in place of "
        f"{logs[0].text}; or {usual}"
    )


def _picked(log: Written) -> tuple[str, str]:
    """What a logarithm is taken of, and the variable that picks a class of each row in it."""
    given = operand(log.text)
    node = ast.parse(given, mode="eval").body if given else None
    parts = node.slice.elts if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else []
    picked = ast.unparse(parts[1]) if len(parts) == _PAIR and isinstance(parts[1], ast.Name) else ""
    return given, picked


def _share(division: Written) -> tuple[str, str]:
    """Of `e / e.sum(1, keepdim=True)`, what is divided and the axis of its sum; empty for another division."""
    node = ast.parse(division.text, mode="eval").body
    below = node.right if isinstance(node, ast.BinOp) else None
    if not isinstance(node, ast.BinOp) or not isinstance(below, ast.Call) or called(below) != "sum":
        return "", ""
    top = ast.unparse(node.left)
    own = isinstance(below.func, ast.Attribute) and ast.unparse(below.func.value) == top
    rest = below.args if own else below.args[1:] if below.args and ast.unparse(below.args[0]) == top else []
    named = [one.value for one in below.keywords if one.arg in ("dim", "axis")]
    axis = next((ast.unparse(one) for one in (*rest, *named)), "")
    return (top, axis) if own or rest or named else ("", "")


def _stores(run: Run) -> list[tuple[str, str]]:
    """Variables of the texts, with each expression that they are given."""
    cells = dict.fromkeys(past.cell.source for past in (*run.earlier, run))
    trees = [tree for source in cells if (tree := syntax.parse(source)) is not None]
    stores = [one for tree in trees for one in syntax.walk(tree) if isinstance(one, ast.Assign)]
    return [(ast.unparse(one.targets[0]), ast.unparse(one.value)) for one in stores]
