"""`nn.CrossEntropyLoss(output, target)`: the class is given what its instance wants."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, Run, restated, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# The flags of a loss, for which it takes the tensors, are asked whether they are true.
_AMBIGUOUS = "Boolean value of Tensor with more than one value is ambiguous"


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds the call of a class of losses that was given tensors, in a cell that failed by it."""
    error = run.error
    if error is None or error.kind != "RuntimeError" or _AMBIGUOUS not in error.message:
        return
    call = _call(error)
    if call is None:
        return
    name, given = ast.unparse(call.func), ", ".join(map(ast.unparse, call.args))
    yield Finding(
        message=f"`{name}({given})` builds a loss with these tensors as its settings: it is a class, not a function.",
        subject=name,
        fix=restated(error, f"{name}()({given})"),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("call", ast.unparse(call)),),
    )


def _call(error: ErrorFact) -> ast.Call | None:
    """The failing expression, if it calls a class whose name ends in `Loss` with two or more values and no settings."""
    call = syntax.expression(error.expression)
    if not isinstance(call, ast.Call) or call.keywords or len(call.args) < 2:  # noqa: PLR2004
        return None
    name = ast.unparse(call.func).rpartition(".")[2]
    return call if name.endswith("Loss") and name[:1].isupper() else None
