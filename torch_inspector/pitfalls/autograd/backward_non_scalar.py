"""`backward()` on a tensor of several numbers."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from torch_inspector.facts import RefusalFact, Run
from torch_inspector.facts.receiver import receiver
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = "implicitly created only for scalar outputs"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the tensor that was to be differentiated and has more than one element."""
    error = run.error
    if error is None or error.kind != "RuntimeError" or _REFUSED not in error.message:
        return
    refusal = error.refusal or RefusalFact()
    root = refusal.root or "the tensor"
    made = refusal.made_at
    where = f" (line {made.line})" if made is not None and made.line and made.cell == error.place.cell else ""
    yield Finding(
        message=f"`{root}`{where} has {_size(refusal)}; only one number can be differentiated without weights.",
        subject=refusal.root if refusal.named else "",
        fix=_fix(refusal, error.statement),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(Evidence(f"shape of {root}", str(refusal.shape)),) if refusal.shape is not None else (),
    )


def _size(refusal: RefusalFact) -> str:
    if refusal.shape is None:
        return "more than one element"
    return f"the shape {refusal.shape}, {prod(refusal.shape)} elements"


def _fix(refusal: RefusalFact, statement: str) -> str:
    root = refusal.root
    if root and statement == f"{receiver(root)}.backward()":
        return f"{receiver(root)}.mean().backward()  # or .sum()"
    return (
        f"{root}.mean()  # or .sum(), before it is differentiated" if refusal.named else "reduce it with .mean() first"
    )
