"""A tensor on a device handed to NumPy, or to a library that is built on it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, OperandFact, Run, with_operand
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = re.compile(r"can't convert ([\w:]+) device type tensor to numpy")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the tensor that is on a device when it is to become an array."""
    error = run.error
    told = _REFUSED.search(error.message) if error is not None and error.kind == "TypeError" else None
    if error is None or told is None:
        return
    tensor = next((one for one in error.operands if one.kind == "tensor" and one.devices != ("cpu",)), None)
    yield Finding(
        message=_message(error, tensor, told[1]),
        subject=tensor.path if tensor else "",
        fix=_fix(error, tensor),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence(tensor.path, f"{tensor.dtype} {tensor.shape} on {told[1]}"),) if tensor else (),
    )


def _message(error: ErrorFact, tensor: OperandFact | None, device: str) -> str:
    where = f"`{error.expression}`" if error.expression else "this line"
    if tensor is None:
        return f"{where} makes an array of a tensor on {device}; NumPy reads the memory of the host only."
    also = f" (`{tensor.known_as}` in the call)" if tensor.known_as and tensor.known_as != tensor.path else ""
    return f"`{tensor.path}`{also}, {tensor.shape}, is on {device}; NumPy reads the memory of the host only."


def _fix(error: ErrorFact, tensor: OperandFact | None) -> str:
    if tensor is None:
        return f"move the tensors first: tensor.detach().cpu(), then {error.expression or 'the same line'}"
    moved = ".detach().cpu()" if tensor.requires_grad else ".cpu()"
    return with_operand(error, tensor.path, f"{tensor.path}{moved}") or f"{tensor.path}{moved}.numpy()"
