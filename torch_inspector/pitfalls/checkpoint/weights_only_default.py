"""A checkpoint that holds more than tensors and plain values, refused by the restricted loader."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = "Weights only load failed"
# How versions name the class or function that was refused.
_NAMES = re.compile(r"GLOBAL ([\w.]+)|Can only \w+ .*?(?:got|for) <?(?:class )?'?([\w.]+)")
_OURS = ("torch.nn.", "torchvision.")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds loads that failed because `weights_only` is True by default, and what was refused."""
    error = run.error
    if error is None or error.kind != "UnpicklingError" or _REFUSED not in error.message:
        return
    told = _NAMES.search(error.message)
    refused = (told[1] or told[2] or "").rstrip(".") if told is not None else ""
    where = f"`{error.expression}`" if error.expression else "torch.load"
    what = f"`{refused}`" if refused else "an object of another kind"
    yield Finding(
        message=f"{where} takes tensors and plain values only (weights_only), and the file holds {what}.",
        subject=refused,
        fix=_fix(error, refused),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence("refused", refused),) if refused else (),
    )


def _fix(error: ErrorFact, refused: str) -> str:
    trusted = _trusting(error.expression)
    if refused.startswith("numpy"):
        return f"save float(value) instead of NumPy's number, or {trusted}  # if you trust the file"
    if refused.startswith(("__main__.", *_OURS)):
        return f"torch.save(model.state_dict(), path)  # then model.load_state_dict(...); or {trusted} if you trust it"
    return f"{trusted}  # only for a file that you trust: it can run any code"


def _trusting(expression: str) -> str:
    if not expression.endswith(")") or "load(" not in expression:
        return "torch.load(path, weights_only=False)"
    if "weights_only=True" in expression:
        return expression.replace("weights_only=True", "weights_only=False")
    return f"{expression[:-1]}, weights_only=False)"
