"""In-place change of a tensor that is waiting for a gradient."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, OperandFact, Run
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
        fix=_fix(error, leaf),
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


def _fix(error: ErrorFact, leaf: OperandFact | None) -> str:
    line = error.statement or (f"{leaf.path}..." if leaf else "...")
    return f"with torch.no_grad():\n    {line}"
