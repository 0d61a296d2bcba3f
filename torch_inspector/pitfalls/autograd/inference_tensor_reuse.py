"""A tensor that was made under `inference_mode()` is used where autograd records."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, OperandFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSALS = (
    "Inference tensors cannot be saved for backward",
    "Inplace update to inference tensor outside InferenceMode",
    "on inference tensor outside InferenceMode",
    "Inference tensors do not track version counter",
    "Cannot set version_counter for inference tensor",
)


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the tensor that autograd refuses because it was made under `inference_mode()`."""
    error = run.error
    if error is None or error.kind != "RuntimeError" or not any(text in error.message for text in _REFUSALS):
        return
    tensor = next((one for one in error.operands if one.inference), None)
    yield Finding(
        message=_message(error, tensor),
        subject=tensor.path if tensor else "",
        fix=_fix(tensor),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence(tensor.path, f"{tensor.dtype} {tensor.shape}, inference tensor"),) if tensor else (),
    )


def _message(error: ErrorFact, tensor: OperandFact | None) -> str:
    if tensor is None:
        where = f"`{error.expression}`" if error.expression else "this line"
        return f"{where} uses a tensor that was made under inference_mode(), which autograd does not accept."
    also = f" (`{tensor.known_as}` in the call)" if tensor.known_as and tensor.known_as != tensor.path else ""
    also = also or (f" (in `{error.caller}`)" if error.caller else "")
    return f"`{tensor.path}`{also} was made under inference_mode(){_made(error, tensor)}: autograd does not accept it."


def _made(error: ErrorFact, tensor: OperandFact) -> str:
    made = tensor.made_at
    if made is None or made.line is None:
        return ""
    there = f" of cell {made.cell}" if made.cell not in (error.place.cell, None) else ""
    return f" (line {made.line}{there})"


def _fix(tensor: OperandFact | None) -> str:
    path = tensor.path if tensor else "features"
    return f"{path} = {path}.clone()  # or make it under torch.no_grad() instead of inference_mode()"
