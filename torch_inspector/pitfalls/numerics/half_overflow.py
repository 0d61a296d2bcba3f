"""Numbers that float16 cannot hold became infinite."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from torch_inspector.facts import ErrorFact, ExtremeFact, LossFact, Place, Run
from torch_inspector.facts.first_infinite import divided_by_zero, first_infinite, giving_line, takes_logarithms
from torch_inspector.facts.half_causes import HalfCause, overflows, zeros
from torch_inspector.facts.lost_masks import LostMask, lost_mask
from torch_inspector.facts.made_of import ingredients_of, variable_of
from torch_inspector.facts.refused_number import refused_number
from torch_inspector.facts.vanished import guards, vanished
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_LARGEST = 65_504
# Infinities that are written down are meant: masks, limits.
_MEANT = re.compile(r"\binf\b|\binfty?\b|\bInf\b|isinf|masked_fill")
_GAPS = re.compile(r"\bnan\b|isnan|isfinite|nan_to_num|nanm", re.IGNORECASE)
# Products of matrices, as the scores of an attention.
_PRODUCT = re.compile(r"@|\b(matmul|bmm|mm|einsum|baddbmm)\(")
# What torch says of a single number that is beyond it; of tensors it makes infinities.
_REFUSED = re.compile(r"cannot be converted to type (at|c10)::Half without overflow")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds float16 variables with infinities, losses that were not finite in a float16 graph, numbers it refused."""
    if run.error is not None and _REFUSED.search(run.error.message):
        yield _of_error(run, run.error)
        return
    lost = lost_mask(run)
    if lost is not None and lost.in_loss:
        yield _of_mask(lost)
        return
    found = None
    if run.after.extremes and not _MEANT.search(run.cell.code):
        found = first_infinite(run)
    if found is not None:
        yield _of_variable(run, *found)
    elif divided_by_zero(run):  # of such infinities the rest of the cell may be made
        yield from (_of_cause(run, one) for one in islice(_beside_divisions(run), 1))
    else:
        yield from _without_infinities(run, lost)


def _beside_divisions(run: Run) -> Iterator[HalfCause]:
    """Steps that went past the end of which nothing is made of a division by zero."""
    divided = set(map(variable_of, divided_by_zero(run)))
    for one in overflows(run):
        if divided.isdisjoint(ingredients_of(run.cell.source, [variable_of(one.path)])):
            yield one


def _without_infinities(run: Run, lost: LostMask | None) -> Iterator[Finding]:
    """What else tells that an end was passed: losses, rows of zeros, results that are nan."""
    if lost is not None:
        yield replace(_of_mask(lost), severity="hint")
        return
    if any(vanished(run)) or any(zeros(run)):
        return  # the other end of float16, of which half-underflow tells
    loss = run.first_nonfinite_loss() if run.overflowed() else None
    if loss is not None:
        yield _of_loss(run, loss)
    elif zeroed := list(_of_rows(run)):
        yield zeroed[0]
    elif not run.trace.backwards:
        known = next(overflows(run), None)
        yield from _of_result(run) if known is None else [_of_cause(run, known)]


def _of_mask(lost: LostMask) -> Finding:
    """A mask of an earlier cell that leaves nothing of a row."""
    one, count = lost.mask, lost.mask.negative_inf_count
    return Finding(
        message=(
            f"`{one.path}` {_amount(count, one.count)}: float16 ends at 65,504, and {lost.number} became minus "
            f"infinity; a row that is masked throughout has no softmax then, and `{lost.spoiled}` is nan."
        ),
        subject=one.path,
        fix=f"-3e4  # in place of {lost.number}: float16 holds it, and a row that is masked throughout is finite",
        line=lost.place.line,
        cell=lost.place.cell,
        evidence=(
            Evidence("infinite values", count, "count"),
            Evidence("values in all", one.count, "count"),
            Evidence("nan in", lost.spoiled),
            Evidence("largest number of float16", _LARGEST),
        ),
    )


def _of_rows(run: Run) -> Iterator[Finding]:
    """Norms of which infinite squares have made zeros of what they were given."""
    for call in run.trace.forwards:
        if call.zeroed is not None:
            name, place = run.name_of(call), call.place
            yield _of_norm(name, place, call.zeroed.count, call.zeroed.total, f"{call.zeroed.largest:,.0f}")
    for fact in run.expressions("zeroed"):
        if fact.shapes and len(fact.shapes[0]) > 1:
            count, total = fact.shapes[0][:2]
            yield _of_norm(fact.text, fact.place, count, total, fact.detail)


def _of_norm(name: str, place: Place, count: int, total: int, largest: str) -> Finding:
    return Finding(
        message=(
            f"`{name}` made {count} of {total} rows zero, which were not: they have numbers up to {largest}, and the "
            "squares are beyond 65,504, where float16 ends; one over infinity is 0."
        ),
        subject=name,
        fix="# in its code x.float().pow(2) in place of x.pow(2), and .to(x.dtype) of the result: squares in float32",
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("rows made zero", count, "count"),
            Evidence("rows in all", total, "count"),
            Evidence("largest number of float16", _LARGEST),
        ),
    )


def _of_cause(run: Run, one: HalfCause) -> Finding:
    """Of a step that is known to have gone past the end."""
    nan = "is nan" if one.count == 1 else f"has {one.nan_count} nan of {one.count} values"
    where = f" ({one.place.said_in(run.cell.number)})" if one.place.cell != run.cell.number else ""
    return Finding(
        message=f"`{one.path}` {nan}: {one.said}{where}, and float16 ends at 65,504.",
        subject=one.path,
        fix=_fix_of_cause(one),
        line=one.place.line,
        cell=one.place.cell,
        evidence=(
            Evidence("nan", one.nan_count, "count"),
            Evidence("values in all", one.count, "count"),
            Evidence("largest number of float16", _LARGEST),
        ),
        severity="error" if one.is_sure else "hint",
    )


def _fix_of_cause(one: HalfCause) -> str:
    if not one.is_sure:
        return (
            "# masks that add up to no less than -6e4: torch.maximum of the two, or -1e4 in place of the lowest number"
        )
    if one.name == "exp" or one.name.startswith("torch.exp("):
        return "# torch.logsumexp or log_softmax of the exponents, which float16 holds; or exp of x.float()"
    if one.name in ("@", "a linear layer") or _PRODUCT.search(one.name):
        return "# divide before multiplying: (q / d**0.5) @ k; or .float() on both sides, or bfloat16"
    if one.name.startswith(("torch.tensor(", "torch.full(")):
        return f"# a number that float16 holds, such as 1e4, in `{one.name}`; or bfloat16"
    return f"# .float() on what `{one.name}` is given, or bfloat16"


def _of_result(run: Run) -> Iterator[Finding]:
    """What a model of finite weights made of finite numbers, and is NaN: a step inside went past the end."""
    if not run.after.extremes:
        return
    if run.before.extremes or run.after.failed_weights or _MEANT.search(run.cell.code) or _GAPS.search(run.cell.code):
        return
    calls = {call.output_shape: call for call in run.trace.forwards if call.parameter_keys}
    shapes = {tensor.path: tensor.shape for tensor in run.after.tensors}
    for one in run.after.extremes:
        call = calls.get(shapes.get(one.path))
        line = giving_line(run, one.path)
        if one.dtype != "float16" or not one.nan_count or call is None or line is None:
            continue
        if (call.place.cell, call.place.line) != (run.cell.number, line):
            continue  # a name for something else of that shape
        name = run.name_of(call)
        yield Finding(
            message=(
                f"`{one.path}` has {one.nan_count} nan of {one.count} values. `{name}` computed it in float16, which "
                f"ends at 65,504: beyond it are infinities, and infinity minus infinity is nan{_or_zero(run)}."
            ),
            subject=one.path,
            fix=f"{name}.bfloat16()  # or .float(); inside, divide before multiplying: (q / d**0.5) @ k",
            line=line,
            cell=run.cell.number,
            evidence=(Evidence("nan", one.nan_count, "count"), Evidence("values in all", one.count, "count")),
            severity="warning",
        )
        return


def _or_zero(run: Run) -> str:
    """The other reason that a text may have: a divisor that a number was to keep from zero."""
    found = list(guards(run))
    if not found:
        return ""
    one = found[0]
    where = one.place.said_in(run.cell.number)
    return f"; or `{one.guarded}`, {where}, is zero, as `{one.number}` is in float16, and 0 / 0 is nan"


def _of_error(run: Run, error: ErrorFact) -> Finding:
    """Of a mask value such as -1e9, which is written for float32."""
    halves = [one for one in error.operands if one.kind == "tensor" and one.dtype == "float16"]
    subject, text = halves[0].path if halves else "", error.expression or error.statement
    where = f"`{text}`" if text else "the line"
    return Finding(
        message=f"{where} gives float16 a number that it cannot hold: it ends at 65,504.",
        subject=subject or text,
        fix=(
            f"torch.finfo({subject or 'scores'}.dtype).min  # the lowest number of any type, "
            f"in place of {refused_number(run, error, text)}"
        ),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(
            *(Evidence(one.path, f"{one.shape} {one.dtype}") for one in halves[:1]),
            Evidence("largest number of float16", _LARGEST),
        ),
    )


def _of_variable(run: Run, line: int, one: ExtremeFact) -> Finding:
    spread = [other for other in run.after.extremes if other.nan_count and other.path != one.path]
    then = f", and `{spread[0].path}` {spread[0].nan_count} nan" if spread else ""
    infinite = one.inf_count + one.negative_inf_count
    return Finding(
        message=f"`{one.path}` {_amount(infinite, one.count)}{then}: {_end(run)}.",
        subject=one.path,
        fix=_fix(run, line),
        line=line,
        cell=run.cell.number,
        evidence=(
            Evidence("infinite values", infinite, "count"),
            Evidence("values in all", one.count, "count"),
            *(Evidence(f"nan in {other.path}", other.nan_count, "count") for other in spread),
            Evidence("largest number of float16", _LARGEST),
        ),
    )


def _end(run: Run) -> str:
    """Which end of float16 was passed; where logarithms are taken, that may be the lower one."""
    if not takes_logarithms(run):
        return "float16 holds nothing beyond 65,504"
    return "float16 holds nothing beyond 65,504, and makes 0 of what is below 6e-08, whose logarithm is -inf"


def _amount(infinite: int, count: int) -> str:
    if count == 1:
        return "is infinite"
    return f"has {infinite} infinite value{'s' if infinite > 1 else ''}"


def _fix(run: Run, line: int) -> str:
    if _PRODUCT.search("".join(run.cell.source.splitlines()[line - 1 : line])):
        return "compute this line in float32 or bfloat16, or divide before multiplying: (q / d**0.5) @ k"
    if takes_logarithms(run):
        return "compute it in float32, and products of probabilities as sums of logarithms: torch.logsumexp"
    return "compute this line in float32, with .float() on the tensors that go into it, or in bfloat16"


def _fix_of_graph(run: Run) -> str:
    """Where the end was passed is not known, as often as not in a product of matrices before the loss."""
    if any(".half()" in cell.source for cell in (run.cell, *(past.cell for past in run.earlier))):
        return "# .bfloat16() in place of .half(), or float32 where matrices are multiplied: the loss alone is too late"
    return "# dtype=torch.bfloat16 in autocast, or .float() on both sides of the product that goes beyond 65,504"


def _of_loss(run: Run, loss: LossFact) -> Finding:
    backward = next((one for one in run.trace.backwards if one.place == loss.place), None)
    name = (backward.root if backward is not None else "") or "loss"
    place = backward.made_at if backward is not None else loss.place
    others = ", ".join(f"`{one.path}`" for one in loss.origins if one.path != name)
    return Finding(
        message=(
            f"`{name}` was {loss.value} at call {loss.index} of `backward()`"
            f"{f', and so was {others}' if others else ''}: its graph computes in float16, which ends at 65,504."
        ),
        subject=name,
        fix=_fix_of_graph(run),
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("value", str(loss.value)),
            *(Evidence(f"infinite values in {one.path}", one.inf_count, "count") for one in loss.origins),
            *(Evidence(f"nan in {one.path}", one.nan_count, "count") for one in loss.origins),
        ),
    )
