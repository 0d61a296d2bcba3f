"""Scores, or NaN, in a binary loss that takes probabilities."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, OutsideFact, Run, restated, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = "all elements of input should be between 0 and 1"
_CLASS, _BETTER = "BCELoss", "BCEWithLogitsLoss"
_FUNCTION = "binary_cross_entropy"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds cells that a binary loss ended because of its prediction."""
    error = run.error
    if error is None or error.kind != "RuntimeError" or _REFUSED not in error.message:
        return
    name, given = _prediction(error), error.outside
    spoiled = given is not None and given.nan_count > 0
    yield Finding(
        message=f"{f'`{name}`' if name else 'The prediction'} {_said(given)}",
        subject=name,
        fix=_cleaned(error) if spoiled else _fix(error),
        line=error.place.line,
        cell=error.place.cell,
        evidence=_evidence(given),
    )


def _said(given: OutsideFact | None) -> str:
    if given is not None and given.nan_count:
        return f"holds {given.nan_count} nan among {given.count} values, and a binary loss takes numbers from 0 to 1."
    found = f"goes from {given.low:.3g} to {given.high:.3g}" if given is not None else "goes beyond 0 to 1"
    return (
        f"{found}, and this loss takes probabilities, from 0 to 1: for the scores themselves, "
        "before a sigmoid, there is a loss of its own."
    )


def _evidence(given: OutsideFact | None) -> tuple[Evidence, ...]:
    if given is None:
        return ()
    nan = (Evidence("nan", given.nan_count, "count"),) if given.nan_count else ()
    return (Evidence("smallest number", given.low), Evidence("largest number", given.high), *nan)


def _call(error: ErrorFact) -> ast.Call | None:
    """The call of the loss in the failing expression."""
    call = syntax.expression(error.expression)
    while isinstance(call, ast.Call) and not (call.args or call.keywords) and isinstance(call.func, ast.Attribute):
        call = call.func.value
    return call if isinstance(call, ast.Call) else None


def _first(error: ErrorFact) -> ast.expr | None:
    """The prediction as written."""
    call = _call(error)
    named = [one.value for one in call.keywords if one.arg == "input"] if call is not None else []
    return next(iter([*(call.args if call is not None else ()), *named]), None)


def _prediction(error: ErrorFact) -> str:
    """What the code calls the prediction."""
    first = _first(error)
    return ast.unparse(first) if isinstance(first, (ast.Name, ast.Attribute, ast.Subscript)) else ""


def _fix(error: ErrorFact) -> str:
    call, remark = _call(error), "takes the scores; no sigmoid before it"
    if isinstance(_first(error), ast.BinOp):  # something was done to what came in, and that may be the mistake
        return ""
    losses = [one.path for one in error.operands if one.kind == _CLASS]
    if losses and losses[0].isidentifier():
        return f"{losses[0]} = torch.nn.{_BETTER}()  # {remark}"
    for old, new in ((_CLASS, _BETTER), (_FUNCTION, f"{_FUNCTION}_with_logits")):
        if call is not None and ast.unparse(call).count(f"{old}(") == 1:
            text = ast.unparse(ast.parse(error.expression)).replace(f"{old}(", f"{new}(")
            return f"{restated(error, text)}  # {remark}"
    return f"torch.nn.{_BETTER}()  # {remark}"


def _cleaned(error: ErrorFact) -> str:
    first = _first(error)
    if first is None:
        return ""
    closed = isinstance(first, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    shown = ast.unparse(first) if closed else f"({ast.unparse(first)})"
    return f"print({shown}.isnan().sum())  # look where it becomes nan: in the inputs, or in the weights"
