"""`x.to(device)` as a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from torch_inspector.facts import DiscardFact, ErrorFact, OperandFact, Place, Run
from torch_inspector.facts.kept_results import kept
from torch_inspector.facts.wanted import asks_for_device, asks_for_dtype
from torch_inspector.findings import Evidence, Finding, Severity
from torch_inspector.pitfall import pitfall

_KINDS = ("RuntimeError", "TypeError", "ValueError", "IndexError")
# Errors about the kind of numbers or the place of a tensor.
_MEANT = re.compile(
    r"type|\bbool|\b(Float|Half|Double|Long|Int|Byte)\b|device|\b(cuda|cpu|mps)\b|tensors used as indices",
    re.IGNORECASE,
)


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds statements that convert or move a tensor and keep nothing; modules are changed in place and are right."""
    blamed = {one.place: (one, operand) for one, operand in _blamed(run)}
    for one, operand in blamed.values():
        yield _of_error(run, one, operand)
    modules = {call.name for call in run.trace.forwards} | {module.path for module in run.after.modules}
    for one in run.after.discards:
        looked_at = (one.shown and not _is_move(one)) or (_is_as_wanted(one) and (one.shown or not _is_move(one)))
        if one.place in blamed:
            continue
        if (one.is_tensor and not looked_at) or (one.fed and one.path not in modules):
            yield _finding(run, one)
    yield from (_finding(run, one) for one in _by_functions(run) if one.place not in blamed)


def _by_functions(run: Run) -> Iterator[DiscardFact]:
    """What a function that the cell has called throws away of a tensor that it was given, unless it was told before."""
    told = {one.place for past in (*run.earlier, run) for one in past.after.discards if one.fed}
    told |= {fact.place for past in run.earlier for fact in past.expressions("thrown-away")}
    for fact in run.expressions("thrown-away"):
        path, device, dtype, over = fact.names
        if fact.place not in told:
            yield DiscardFact(fact.place, path, fact.text, fact.detail, device, dtype, is_tensor=True, over=over)


def _blamed(run: Run) -> Iterator[tuple[DiscardFact, OperandFact]]:
    """What a line threw away that failed later in its function, because the variable was still what it had been."""
    error = run.error
    if error is None or error.kind not in _KINDS or not _MEANT.search(error.message):
        return
    here = (error.place.cell, error.place.function.rpartition(".")[2])
    for one in (found for past in (run, *reversed(run.earlier)) for found in past.after.discards):
        if (one.place.cell, one.place.function.rpartition(".")[2]) == here and _is_above(one.place, error.place):
            for operand in error.operands:
                made = operand.made_at
                anew = made is not None and made.cell == one.place.cell and not _is_above(made, one.place)
                if operand.path == one.path and operand.dtype and not anew and _is_missed(error, operand, one):
                    yield one, operand


def _is_above(one: Place, other: Place) -> bool:
    return one.line is not None and other.line is not None and one.line < other.line


def _is_missed(error: ErrorFact, operand: OperandFact, one: DiscardFact) -> bool:
    """True if the error asks for what the call would have made of the tensor, and the tensor is not."""
    if not one.wanted:
        return False
    if not _is_move(one):
        return operand.dtype != one.wanted and asks_for_dtype(error.message, one.wanted, operand.dtype)
    devices = tuple(device.partition(":")[0] for device in operand.devices)
    return one.wanted.partition(":")[0] not in devices and asks_for_device(error.message, one.wanted)


def _of_error(run: Run, one: DiscardFact, operand: OperandFact) -> Finding:
    line = run.error.place.line if run.error is not None else None
    now = f"on {', '.join(operand.devices)}" if _is_move(one) else operand.dtype
    effect = f"`{one.path}` is still {now} where line {line} needs it"
    return _told(run, one, effect, Evidence("failed at line", line or 0))


def _is_as_wanted(one: DiscardFact) -> bool:
    device, _, number = one.device.partition(":")
    return one.wanted in (one.dtype, one.device) or (one.wanted == device and number in ("", "0"))


def _is_move(one: DiscardFact) -> bool:
    """True if another device was asked for; numbers of another type may be what somebody wants to see."""
    return not one.wanted or one.wanted.startswith(("cpu", "cuda", "mps", "xpu", "meta"))


def _finding(run: Run, one: DiscardFact) -> Finding:
    dtype = bool(one.wanted) and not _is_move(one)
    now = one.dtype if dtype else one.device
    wrong = bool(one.is_tensor and one.device and one.wanted) and not _is_as_wanted(one) and not one.shown
    if wrong:
        effect = f"`{one.path}` is still {'' if dtype else 'on '}{now}, not {'' if dtype else 'on '}{one.wanted}"
    elif one.is_tensor:
        effect = f"`{one.path}` stays as it is"
    else:
        effect = f"if `{one.path}` is a tensor, it stays as it is"
    found = f"{one.dtype} on {one.device}" if one.device else "not known"
    return _told(run, one, effect, Evidence("after the cell", found), severity="" if wrong else "hint")


def _told(run: Run, one: DiscardFact, effect: str, seen: Evidence, severity: Severity | Literal[""] = "") -> Finding:
    return Finding(
        message=f"The result of `{one.text}` is thrown away: {effect}.",
        subject=one.path,
        fix=kept(run, one) or f"{one.path} = {one.text}",
        line=one.place.line,
        cell=one.place.cell,
        severity=severity,
        evidence=(Evidence("statement", one.text), Evidence("asked for", one.wanted or "not known"), seen),
    )
