"""An array or a Python number asked of a tensor that cannot give it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, OperandFact, Run, restated, with_operand
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_KINDS = ("RuntimeError", "IndexError", "ValueError", "TypeError")
_GRAD = "Can't call numpy() on Tensor that requires grad"
_INDEX = "invalid index of a 0-dim tensor"
_SCALARS = ("cannot be converted to Scalar", "only one element tensors can be converted to Python scalars")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the tensor that was to become an array with its history, or a number with several elements."""
    error = run.error
    if error is None or error.kind not in _KINDS:
        return
    told = _told(error)
    if told is None:
        return
    message, tensor, fix = told
    yield Finding(
        message=message,
        subject=tensor.path if tensor else "",
        fix=fix,
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence(tensor.path, f"{tensor.dtype} {tensor.shape}{_flag(tensor)}"),) if tensor else (),
    )


def _flag(tensor: OperandFact) -> str:
    return ", requires grad" if tensor.requires_grad else ""


def _told(error: ErrorFact) -> tuple[str, OperandFact | None, str] | None:
    tensors = [one for one in error.operands if one.kind == "tensor" and one.shape is not None]
    if _GRAD in error.message:
        return _of_grad(error, next((one for one in tensors if one.requires_grad), None))
    if _INDEX in error.message:
        return _of_index(error, next((one for one in tensors if one.shape == ()), None))
    if any(text in error.message for text in _SCALARS):
        return _of_scalar(error, next((one for one in tensors if one.shape != ()), None))
    return None


def _of_grad(error: ErrorFact, tensor: OperandFact | None) -> tuple[str, OperandFact | None, str]:
    where = f"`{error.expression}`" if error.expression else "this line"
    if tensor is not None:
        inside = f" in `{error.statement}`" if error.place.function.startswith("<") and error.statement else ""
        message = f"`{tensor.path}`{_also(tensor)}{inside} requires grad: an array cannot carry its history."
        move = "" if tensor.devices == ("cpu",) else ".cpu()"
        return message, tensor, _detached(error, tensor.path, f".detach(){move}")
    name = _argument(error.expression)
    fix = f"{name} = [one.item() for one in {name}]  # or one.detach()" if name else "tensor.detach().numpy()"
    return f"{where} makes an array of tensors that require grad; an array cannot carry their history.", None, fix


def _of_index(error: ErrorFact, tensor: OperandFact | None) -> tuple[str, OperandFact | None, str]:
    where = f"`{error.expression}`" if error.expression else "this line"
    if tensor is None:
        return f"{where} takes an element of a tensor without dimensions.", None, ".item() instead of [0]"
    message = f"{where} takes an element of `{tensor.path}`{_also(tensor)}, which is one number without dimensions."
    return message, tensor, restated(error, f"{tensor.path}.item()")


def _of_scalar(error: ErrorFact, tensor: OperandFact | None) -> tuple[str, OperandFact | None, str]:
    where = f"`{error.expression}`" if error.expression else "this line"
    if tensor is None:
        return f"{where} asks for one number of a tensor with several.", None, ".tolist(), or .mean().item()"
    message = f"{where} asks for one number of `{tensor.path}`{_also(tensor)}, which has the shape {tensor.shape}."
    fix = restated(error, f"{tensor.path}.mean().item()")
    return message, tensor, f"{fix}  # or {tensor.path}.tolist() for all of them"


def _detached(error: ErrorFact, path: str, moved: str) -> str:
    """The statement that failed with a plain tensor in it; of `plt.plot(x)` and its like with an array."""
    asked = ".numpy(" in error.expression
    return with_operand(error, path, f"{path}{moved}{'' if asked else '.numpy()'}") or f"{path}{moved}.numpy()"


def _also(tensor: OperandFact) -> str:
    return f" (`{tensor.known_as}` in the call)" if tensor.known_as and tensor.known_as != tensor.path else ""


def _argument(expression: str) -> str:
    """The first plain name that a call was given: `losses` in `plt.plot(losses)`."""
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    given = tree.args if isinstance(tree, ast.Call) else []
    return next((one.id for one in given if isinstance(one, ast.Name)), "")
