"""In-place change of a tensor that is waiting for a gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile

from torch_inspector.facts import ErrorFact, OperandFact, Run, syntax
from torch_inspector.facts.out_of_place import out_of_place
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = "leaf Variable that requires grad is being used in an in-place operation"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the leaf that a statement was to change in place while autograd was recording."""
    error = run.error
    if error is None or error.kind != "RuntimeError" or _REFUSED not in error.message:
        return
    leaf = _leaf(error)
    yield Finding(
        message=_message(error, leaf),
        subject=leaf.path if leaf else "",
        fix=out_of_place(run, error, leaf) or _fix(run, error, leaf),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence(leaf.path, f"{leaf.dtype} {leaf.shape}, requires grad"),) if leaf else (),
    )


def _leaf(error: ErrorFact) -> OperandFact | None:
    """The operand that was to be changed: the first that requires grad, leaves before views of one."""
    tensors = [one for one in error.operands if one.kind == "tensor" and one.requires_grad]
    return min(tensors, key=lambda one: (one.nested, not one.is_leaf), default=None)


def _message(error: ErrorFact, leaf: OperandFact | None) -> str:
    what = f"`{error.statement}`" if error.statement else "this line"
    if leaf is None:
        return f"{what} changes a tensor that requires grad in place, while autograd is recording."
    also = f" (`{leaf.known_as}` in the call)" if leaf.known_as and leaf.known_as != leaf.path else ""
    view = "" if leaf.is_leaf else "a view of "
    return (
        f"{what} changes `{leaf.path}`{also} in place, {view}a tensor {leaf.shape} that requires grad, "
        f"while autograd is recording."
    )


def _fix(run: Run, error: ErrorFact, leaf: OperandFact | None) -> str:
    line = error.statement or (f"{leaf.path}..." if leaf else "...")
    more = _changes_after(run, error, leaf.path) if leaf is not None and error.statement else []
    return "\n    ".join(["with torch.no_grad():", line, *more])


def _changes_after(run: Run, error: ErrorFact, path: str) -> list[str]:
    """The statements right behind the one that failed which change the same tensor in place."""
    tree, line = syntax.parse(run.source_of(error.place.cell)), error.place.line
    nodes = syntax.walk(tree) if tree is not None else ()
    bodies = [body for node in nodes if isinstance(body := getattr(node, "body", None), list)]
    after = [
        body[number + 1 :]
        for body in bodies
        for number, one in enumerate(body)
        if one.lineno == line and not hasattr(one, "body") and _changed(one) == path
    ]
    found = takewhile(lambda one: _changed(one) == path, after[-1] if after else ())
    return [ast.unparse(one) for one in found]


def _changed(node: ast.stmt) -> str:
    """What a statement changes in place: `E` of `E[:, 0] = x`, `E += x`, `E[0].fill_(1)`; empty for others."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        return ast.unparse(node.targets[0].value)
    if isinstance(node, ast.AugAssign):
        return ast.unparse(node.target.value if isinstance(node.target, ast.Subscript) else node.target)
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.func.attr.endswith("_"):
        return ""
    owner = call.func.value
    return ast.unparse(owner.value if isinstance(owner, ast.Subscript) else owner)
