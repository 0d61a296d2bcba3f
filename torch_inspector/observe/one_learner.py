"""Whether the turns of a training loop teach one model, one after the other, each by the loss of its batch alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.expressions import Scope
from torch_inspector.observe.ordered_loops import is_loss
from torch_inspector.observe.source import dotted

# What sets a model back, and what writes weights by hand.
_SETS_BACK = frozenset(
    ["load_state_dict", "reset_parameters", "apply", "copy_", "vector_to_parameters", "_foreach_copy_"]
)
# What leaves a loss the same but for its scale.
_LEAVES = frozenset(["mean", "sum", "scale", "scale_loss", "float", "double", "to", "squeeze"])
# Gradients that are read, or written: the step may follow more than the loss.
_GRADIENTS = re.compile(r"\.grad\b(?!\s*=\s*None\b|\s+is\b|(\.data|\.detach\(\))?\.(zero_|detach_)\()")
_DEEPEST = 8


def goes_on(scope: Scope, loop: ast.For) -> bool:
    """True if one model goes on from turn to turn, and its only loss compares with the targets of the turn."""
    calls = [one for one in syntax.walk(loop) if isinstance(one, ast.Call)]
    calls += [one for function in _called(scope, calls) for one in syntax.walk(function) if isinstance(one, ast.Call)]
    backwards = [one for one in calls if _name_of(one) == "backward"]
    if len(backwards) != 1 or _is_new(loop, calls) or _GRADIENTS.search(ast.unparse(loop)):
        return False
    func = backwards[0].func
    asked = [func.value] if isinstance(func, ast.Attribute) else []
    return any(_is_loss_alone(scope, one, loop) for one in (*asked, *backwards[0].args[:1]))


def _called(scope: Scope, calls: list[ast.Call]) -> Iterator[ast.FunctionDef]:
    """Functions of the user's that are called by name, or as methods of `self`."""
    plain = (one for one in calls if isinstance(one.func, ast.Name) or dotted(one.func).startswith("self."))
    names = {_name_of(one) for one in plain}
    trees = [file.tree for file in (scope.file, *scope.reading.places.latest()) if file.tree is not None]
    for one in (node for tree in dict.fromkeys(trees) for node in syntax.walk(tree)):
        if isinstance(one, ast.FunctionDef) and one.name in names:
            yield one


def _name_of(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", "") or getattr(call.func, "id", ""))


def _is_new(loop: ast.For, calls: list[ast.Call]) -> bool:
    """True if the loop makes what it calls, or steps with, anew, or sets weights back."""
    made = set(_made_in(loop))
    used = {dotted(one.func) for one in calls}
    steps = {one.rpartition(".")[0] for one in used if one.endswith((".step", ".zero_grad"))}
    return bool({_name_of(one) for one in calls} & _SETS_BACK or (steps | used) & made)


def _made_in(loop: ast.For) -> Iterator[str]:
    """Names that each turn gives a value."""
    for node in syntax.walk(loop):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield dotted(node)


def _is_loss_alone(scope: Scope, node: ast.expr, loop: ast.For, depth: int = 0) -> bool:
    """True for a loss over classes by itself, scaled and averaged as may be; false for a sum with more in it."""
    if depth > _DEEPEST:
        return False
    if isinstance(node, ast.Name):
        given = list(_values(node.id, loop))
        return bool(given) and all(one is not None and _is_loss_alone(scope, one, loop, depth + 1) for one in given)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        sides = [node.left, node.right]
        return sum(_is_loss_alone(scope, one, loop, depth + 1) for one in sides) == 1
    if not isinstance(node, ast.Call):
        return False
    if is_loss(scope, node):
        return True
    method = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None
    part = node.args[0] if len(node.args) == 1 else method
    return part is not None and _name_of(node) in _LEAVES and _is_loss_alone(scope, part, loop, depth + 1)


def _values(name: str, loop: ast.For) -> Iterator[ast.expr | None]:
    """What a loop gives a name; None for what is added to it, or is not known."""
    for node in syntax.walk(loop):
        if isinstance(node, ast.Assign) and any(dotted(one) == name for one in node.targets):
            yield node.value if name not in syntax.names_in(node.value) else None
        elif isinstance(node, ast.AugAssign) and dotted(node.target) == name:
            if not isinstance(node.op, (ast.Mult, ast.Div)):
                yield None
        elif isinstance(node, ast.Assign) and any(name in syntax.names_in(one) for one in node.targets):
            yield None
