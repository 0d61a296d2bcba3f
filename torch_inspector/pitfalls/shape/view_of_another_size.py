"""A view to sizes whose product is not the number of elements, which torch refuses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from math import prod

from torch_inspector.facts import ErrorFact, OperandFact, Run, restated, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = re.compile(r"^shape '\[([-\d, ]*)\]' is invalid for input of size (\d+)")
_VIEWS = ("view", "reshape")
_LIBRARIES = ("torch",)


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds the tensor, how many numbers it has, and how many the sizes ask for."""
    error = run.error
    told = _REFUSED.match(error.message) if error is not None and error.kind == "RuntimeError" else None
    if error is None or told is None:
        return
    sizes, count = [int(one) for one in told[1].split(",") if one.strip()], int(told[2])
    owner = _owner(error)
    tensor = next((one for one in error.operands if one.path == owner and one.kind == "tensor"), None)
    shape = f" of shape {tensor.shape}" if tensor is not None else ""
    yield Finding(
        message=f"{f'`{owner}`' if owner else 'The tensor'}{shape} has {count:,} numbers, and {_wanted(sizes)}.",
        subject=owner,
        fix=_fix(error, tensor, sizes),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("numbers", count, "count"), Evidence("sizes", str(sizes))),
    )


def _call(error: ErrorFact) -> ast.Call | None:
    call = syntax.expression(error.expression)
    known = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _VIEWS
    return call if known and isinstance(call, ast.Call) else None


def _owner(error: ErrorFact) -> str:
    """What is viewed: what stands before the method, or the first argument of `torch.reshape`."""
    call = _call(error)
    if call is None or not isinstance(call.func, ast.Attribute):
        return ""
    owner = ast.unparse(call.func.value)
    return owner if owner not in _LIBRARIES else ast.unparse(call.args[0]) if call.args else ""


def _wanted(sizes: list[int]) -> str:
    known = [one for one in sizes if one >= 0]
    product = " * ".join(map(str, known)) + (f" = {prod(known):,}" if len(known) > 1 else "")
    return f"{sizes} wants {'a multiple of ' if -1 in sizes else ''}{product}"


def _fix(error: ErrorFact, tensor: OperandFact | None, sizes: list[int]) -> str:
    """Each sample as one row, where that is what a view to two sizes is for."""
    call, shape = _call(error), tensor.shape if tensor is not None else None
    if call is None or not shape or len(shape) < 2 or len(sizes) != 2 or sizes[0] not in (-1, shape[0]):  # noqa: PLR2004
        return ""
    owner, width = _owner(error), prod(shape[1:])
    text = restated(error, f"{owner}.flatten(1)")
    return f"{text}  # {shape[0]} rows of {width:,} each; the layer behind it has to take {width:,}"
