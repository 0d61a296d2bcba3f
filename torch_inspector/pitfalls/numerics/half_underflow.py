"""Gradients became zero because float16 cannot hold numbers that are so small."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run
from torch_inspector.facts.half_causes import HalfZero, zeros
from torch_inspector.facts.vanished import Vanished, vanished
from torch_inspector.findings import Evidence, Finding, all_of
from torch_inspector.pitfall import pitfall

_SMALLEST = 6e-8


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds losses in float16 that are not zero and whose gradients all are, and small numbers that are zero there."""
    guarded = list(map(_of_guard, vanished(run)))[:1]
    yield from guarded or [_of_zero(run, one) for one in zeros(run)][:1]
    losses = run.underflowed()
    if not losses:
        return
    loss = losses[0]
    backward = next((one for one in run.trace.backwards if one.place == loss.place), None)
    name = (backward.root if backward is not None else "") or "loss"
    keys = backward.leaf_keys if backward is not None else frozenset[int]()
    owner = run.owner_path(keys)
    whose = f" of `{owner}`" if owner else ""
    were = "was" if loss.gradient_count == 1 else "were"
    yield Finding(
        message=(
            f"`{name}` was {loss.value:.2g}, and {all_of(loss.gradient_count, 'gradient')}{whose} {were} exactly zero "
            "after `backward()`: what is below 6e-08 becomes zero in float16."
        ),
        subject=name,
        fix=_fix(name, owner, full=backward is not None and _is_full(backward)),
        line=loss.place.line,
        cell=loss.place.cell,
        evidence=(
            Evidence("gradients that are zero everywhere", loss.zero_gradients, "count"),
            Evidence("gradients", loss.gradient_count, "count"),
            Evidence("backward calls like this, of those looked at", len(losses), "count"),
            Evidence("smallest number of float16", _SMALLEST),
        ),
    )


def _is_full(backward: BackwardFact) -> bool:
    """True if the weights are in float16 themselves: a scaler refuses their gradients."""
    return backward.witness is not None and bool(backward.witness.float16_leaf_count)


def _fix(name: str, owner: str, *, full: bool) -> str:
    if not full:
        return f"scaler.scale({name}).backward()  # with a torch.amp.GradScaler, or compute in bfloat16"
    scaled = "compute under torch.autocast with a GradScaler"
    if not owner:
        return f"# keep the weights in float32 and {scaled}, or weights and inputs in bfloat16"
    return f"{owner}.float()  # and {scaled}; or {owner}.bfloat16(), with inputs in bfloat16"


def _of_guard(one: Vanished) -> Finding:
    """Of a number that was to keep a divisor from zero, and is zero itself."""
    result = one.result
    number = f"`{one.number}`, which is {one.value:g}," if one.value else one.number
    count, kind = (result.nan_count, "nan") if result.nan_count else (result.negative_inf_count, "-inf")
    return Finding(
        message=(
            f"`{result.path}` has {count} {kind} of {result.count} values: {number} is zero in float16, so "
            f"`{one.guarded}` is zero where the rest of it is."
        ),
        subject=result.path,
        fix=f"{one.guarded.replace(one.number, '1e-4')}  # in place of {one.guarded}; or .float() before it",
        line=one.line,
        cell=one.cell,
        evidence=(
            Evidence(kind, count, "count"),
            Evidence("values in all", result.count, "count"),
            Evidence("smallest number of float16", _SMALLEST),
        ),
    )


def _of_zero(run: Run, one: HalfZero) -> Finding:
    """Of what is zero in float16 alone, as its statement computed again tells."""
    nan = "is nan" if one.count == 1 else f"has {one.nan_count} nan of {one.count} values"
    where = f" ({one.place.said_in(run.cell.number)})" if one.place.cell != run.cell.number else ""
    inside = "normalize(" in one.text
    what = f"the divisor in `{one.text}`" if inside else f"`{one.text}`"
    named = not one.number[:1].isdigit()
    least = f"`{one.number}`{f', {one.value:g},' if named else ''}" if one.number else f"{one.value:g}"
    return Finding(
        message=f"`{one.path}` {nan}: {what}{where} is zero, for {least} is below 6e-08, where float16 ends.",
        subject=one.path,
        fix=_fix_of_zero(one, inside=inside),
        line=one.place.line,
        cell=one.place.cell,
        evidence=(
            Evidence("nan", one.nan_count, "count"),
            Evidence("values in all", one.count, "count"),
            Evidence("smallest number of float16", _SMALLEST),
        ),
    )


def _fix_of_zero(one: HalfZero, *, inside: bool) -> str:
    if inside:
        return f"{one.text[:-1]}, eps=1e-4)  # in place of {one.text}; or .float() on what it is given"
    if not one.number:
        return f"# .float() on what `{one.text}` is made of, or bfloat16"
    return f"{_with(one.text, one.number)}  # in place of {one.text}; or .float() before it"


def _with(text: str, number: str) -> str:
    """The same with a number that float16 holds, in its place at the end or wherever it stands."""
    head, _, tail = text.rpartition(number)
    return f"{head}1e-4{tail}"
