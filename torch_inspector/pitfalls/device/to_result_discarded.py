"""`x.to(device)` as a statement."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import DiscardFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds statements that convert or move a tensor and keep nothing; modules are changed in place and are right."""
    modules = {call.name for call in run.trace.forwards} | {module.path for module in run.after.modules}
    for one in run.after.discards:
        looked_at = (one.shown and not _is_move(one)) or (_is_as_wanted(one) and (one.shown or not _is_move(one)))
        if (one.is_tensor and not looked_at) or (one.fed and one.path not in modules):
            yield _finding(one)


def _is_as_wanted(one: DiscardFact) -> bool:
    device, _, number = one.device.partition(":")
    return one.wanted in (one.dtype, one.device) or (one.wanted == device and number in ("", "0"))


def _is_move(one: DiscardFact) -> bool:
    """True if another device was asked for; numbers of another type may be what somebody wants to see."""
    return not one.wanted or one.wanted.startswith(("cpu", "cuda", "mps", "xpu", "meta"))


def _finding(one: DiscardFact) -> Finding:
    dtype = bool(one.wanted) and not _is_move(one)
    now = one.dtype if dtype else one.device
    wrong = one.is_tensor and bool(one.wanted) and not _is_as_wanted(one) and not one.shown
    if wrong:
        effect = f"`{one.path}` is still {'' if dtype else 'on '}{now}, not {'' if dtype else 'on '}{one.wanted}"
    elif one.is_tensor:
        effect = f"`{one.path}` stays as it is"
    else:
        effect = f"if `{one.path}` is a tensor, it stays as it is"
    return Finding(
        message=f"The result of `{one.text}` is thrown away: {effect}.",
        subject=one.path,
        fix=f"{one.path} = {one.text}",
        line=one.place.line,
        cell=one.place.cell,
        severity="" if wrong else "hint",
        evidence=(
            Evidence("statement", one.text),
            Evidence("asked for", one.wanted or "not known"),
            Evidence("after the cell", f"{one.dtype} on {one.device}" if one.is_tensor else "not known"),
        ),
    )
