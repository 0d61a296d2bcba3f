"""`gather` with the index where the dimension belongs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = re.compile(
    r"^(gather|index_select)\(\)(: argument 'dim'.* must be int, not Tensor| received an invalid combination)"
)
# In older releases of torch: what the method, and the function, was given.
_GIVEN = {True: "got (Tensor", False: "got (Tensor, Tensor"}
_ORDER = ("dim", "index")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds calls that gave the index before the dimension."""
    error = run.error
    told = _REFUSED.match(error.message) if error is not None and error.kind == "TypeError" else None
    if error is None or told is None:
        return
    call = _call(error.expression, told[1])
    if "combination" in told[2] and not _is_swapped(error, call):
        return
    index = _index(call)
    name = ast.unparse(index) if index is not None else ""
    what = f"the index `{name}`" if name else "a tensor"
    yield Finding(
        message=f"{told[1]} got {what} where the dimension belongs{_shown(error)}: it is input, dimension, index.",
        subject=name,
        fix=_fix(told[1], call),
        line=error.place.line,
        cell=error.place.cell,
        evidence=tuple(Evidence(one.path, f"{one.dtype} {one.shape}") for one in error.operands if one.dtype),
    )


def _shown(error: ErrorFact) -> str:
    return f" in `{error.expression}`" if error.expression else ""


def _call(expression: str, name: str) -> ast.Call | None:
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    is_call = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr == name
    return tree if is_call else None  # type: ignore[return-value]


def _parts(call: ast.Call) -> tuple[list[ast.expr], list[ast.expr]]:
    """The input, if it is an argument, and what follows it in the order of the parameters."""
    of_torch = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "torch"
    given = list(call.args)
    first = [given.pop(0)] if of_torch and given else []
    return first, given + [keyword.value for keyword in call.keywords if keyword.arg in _ORDER]


def _index(call: ast.Call | None) -> ast.expr | None:
    rest = _parts(call)[1] if call is not None else []
    return rest[0] if rest else None


def _is_swapped(error: ErrorFact, call: ast.Call | None) -> bool:
    """True if what stands in the place of the dimension is a tensor."""
    is_method = call is not None and not _parts(call)[0]
    return _GIVEN[is_method] in error.message


def _fix(name: str, call: ast.Call | None) -> str:
    if call is None:
        return f"torch.{name}(values, 1, index)"
    first, rest = _parts(call)
    if not rest:
        return f"torch.{name}(values, 1, index)"
    index, dimension = ast.unparse(rest[0]), ast.unparse(rest[1]) if len(rest) > 1 else "1"
    given = [*map(ast.unparse, first), dimension, index]
    return f"{ast.unparse(call.func)}({', '.join(given)})"
