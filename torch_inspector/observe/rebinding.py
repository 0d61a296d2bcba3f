"""Assignments that may lose a leaf of autograd, and reads of `.grad`, found in the text of a cell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import GradReadFact, RebindFact, syntax
from torch_inspector.observe.given_anew import given_anew
from torch_inspector.observe.loop_variables import is_of_parameters, own_updates
from torch_inspector.observe.source import dotted

# What makes the value a leaf again, or is no computation.
_ANEW = frozenset(("requires_grad_", "Parameter", "detach", "tensor", "item", "numpy", "tolist", "clone_leaf"))
_GUARDS = ("torch.no_grad", "torch.inference_mode", "no_grad", "inference_mode")
_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_LONGEST = 80


def rebind_facts(tree: ast.Module, offset: int) -> tuple[RebindFact, ...]:
    """All such assignments, by line."""
    own, found = own_updates(tree), list[RebindFact]()
    for node, function, guarded in _walk(tree, "", False):
        # The next turn gives the variable of a loop another leaf.
        if id(node) not in own:
            found.extend(_of(node, function, guarded))
        elif own[id(node)]:
            found.append(_looped(node, function, own[id(node)], guarded=guarded))
    return tuple(fact._replace(line=fact.line + offset) for fact in sorted(found, key=lambda fact: fact.line))


def grad_reads(tree: ast.Module, offset: int) -> tuple[GradReadFact, ...]:
    """All reads of `name.grad` at the top level, by line; `w.grad is None` asks and does not read."""
    found = []
    for node, around in _top_level(tree, tree):
        if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
            path = dotted(node.value)
            if path and not given_anew(path, node.lineno, around):
                found.append(GradReadFact(path, node.lineno + offset))
    return tuple(sorted(found, key=lambda fact: fact.line))


def _top_level(node: ast.AST, around: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The nodes outside functions, each with the innermost loop around it, or the whole cell."""
    stack = [(node, around)]
    while stack:
        node, around = stack.pop()
        yield node, around
        asks = isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        if not asks and not isinstance(node, syntax.INNER):
            inner = node if isinstance(node, syntax.LOOPS) else around
            stack.extend((child, inner) for child in syntax.children(node))


def _walk(node: ast.AST, function: str, guarded: bool) -> Iterator[tuple[ast.Assign, str, bool]]:
    """Every assignment with the function around it, and whether gradients are switched off there."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        function = node.name
        guarded = any(_switches_off(one) for one in node.decorator_list)
    elif isinstance(node, ast.With):
        guarded = guarded or any(_switches_off(item.context_expr) for item in node.items)
    elif isinstance(node, ast.Assign):
        yield node, function, guarded
    for child in syntax.children(node):
        if isinstance(child, (ast.stmt, ast.ExceptHandler)):
            yield from _walk(child, function, guarded)


def _switches_off(node: ast.AST) -> bool:
    return dotted(node.func if isinstance(node, ast.Call) else node) in _GUARDS


def _of(node: ast.Assign, function: str, guarded: bool) -> Iterator[RebindFact]:
    path = dotted(node.targets[0]) if len(node.targets) == 1 else ""
    if not path or not _may_matter(path, node.value):
        return
    names = {_called(n) for n in syntax.walk(node.value) if isinstance(n, ast.Call)}
    text = " ".join(ast.unparse(node).split())
    if len(text) > _LONGEST or names & (_ANEW - {"tensor"}):
        return
    fresh = [n for n in syntax.walk(node.value) if isinstance(n, ast.Call) and _wants_grad(n)]
    reads = {dotted(n) for n in syntax.walk(node.value) if isinstance(getattr(n, "ctx", None), ast.Load)}
    if fresh and fresh[0] is not node.value:
        yield RebindFact(path, node.lineno, text, function, guarded, remedy=_made_well(path, node), made=True)
    elif (
        not fresh and "tensor" not in names and path in reads and not isinstance(node.value, (ast.Name, ast.Attribute))
    ):
        remedy = _in_place(path, node)
        grads = any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in syntax.walk(node.value))
        yield RebindFact(path, node.lineno, text, function, guarded, grads, remedy)


def _looped(node: ast.Assign, function: str, source: str, *, guarded: bool) -> RebindFact:
    path, text = dotted(node.targets[0]), " ".join(ast.unparse(node).split())
    # What else is gone through may be batches of data, which are not to be written into.
    remedy = _in_place(path, node) if is_of_parameters(source) else ""
    return RebindFact(path, node.lineno, text, function, guarded, remedy=remedy, looped=source)


def _may_matter(path: str, value: ast.expr) -> bool:
    """True if a value names what it is given to, or makes something that wants a gradient."""
    base = path.partition(".")[0]
    for node in syntax.walk(value):
        if isinstance(node, ast.Name) and node.id == base:
            return True
        if isinstance(node, ast.keyword) and node.arg == "requires_grad":
            return True
    return False


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)


def _wants_grad(call: ast.Call) -> bool:
    return any(
        k.arg == "requires_grad" and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords
    )


def _in_place(path: str, node: ast.Assign) -> str:
    """`w -= step` for `w = w - step`."""
    value = node.value
    if isinstance(value, ast.BinOp) and dotted(value.left) == path and type(value.op) in _SIGNS:
        return f"{path} {_SIGNS[type(value.op)]}= {ast.unparse(value.right)}"
    return f"{path}.copy_({ast.unparse(value)})"


def _made_well(path: str, node: ast.Assign) -> str:
    text = ast.unparse(node.value).replace(", requires_grad=True", "").replace("requires_grad=True, ", "")
    plain = text.replace("requires_grad=True", "")
    return (
        f"{path} = ({plain}).requires_grad_()"
        if isinstance(node.value, ast.BinOp)
        else f"{path} = {plain}.requires_grad_()"
    )
