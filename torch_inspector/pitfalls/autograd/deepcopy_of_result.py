"""`copy.deepcopy` of something that holds a computed tensor, which torch refuses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, NamedFact, Run, restated, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = "support the deepcopy protocol"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the tensor that was refused, and the line that computes it."""
    error = run.error
    if error is None or error.kind != "RuntimeError" or _REFUSED not in error.message:
        return
    tensor = error.leafless or NamedFact("")
    what = f"`{tensor.path}`" if tensor.path else "a tensor that is part of it"
    yield Finding(
        message=(
            f"{what}{_made(run, tensor)} is computed and holds a graph: "
            "`deepcopy` copies only tensors that were made, not computed."
        ),
        subject=tensor.path,
        fix=_fix(error, tensor),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("shape", str(tensor.shape)),) if tensor.shape is not None else (),
    )


def _made(run: Run, tensor: NamedFact) -> str:
    at = tensor.made_at
    if at is None or at.line is None:
        return ""
    return f", given its value in line {at.line}{f' of cell {at.cell}' if at.cell != run.cell.number else ''},"


def _fix(error: ErrorFact, tensor: NamedFact) -> str:
    call = syntax.expression(error.expression)
    given = ast.unparse(call.args[0]) if isinstance(call, ast.Call) and len(call.args) == 1 else ""
    if given and given == tensor.path:
        return restated(error, f"{given}.detach().clone()")
    if not tensor.path or tensor.kind == "tuple":
        return "# detach what is computed before the copy, or leave it out"
    return f"{tensor.path} = {tensor.path}.detach()  # before the copy; it is computed anew when it is needed"
