"""The loss is NaN or infinite, and not because it grew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from torch_inspector.facts import (
    NO_TARGET,
    NO_VALUES,
    ExtremeFact,
    LossFact,
    OperationFact,
    Place,
    Run,
    SeriesFact,
    called,
    kept_from_edge,
    sole,
    usual_fix,
    with_other_way,
)
from torch_inspector.facts.edges import sole_divisor
from torch_inspector.facts.first_spoiled import FirstSpoiled, first_spoiled
from torch_inspector.facts.loss_scales import is_lowered_later
from torch_inspector.facts.lost_masks import lost_mask, mask_of
from torch_inspector.facts.replaced import in_statement
from torch_inspector.facts.standardised import standardised
from torch_inspector.facts.suspects import suspect
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# What asks for such numbers, or leaves them out; NaN is the one number that is not equal to itself.
_ASKS = re.compile(
    r"is_?nan|isfinite|isinf|nan_to_num|nansum|nanmean|equal_nan|detect_anomaly|\bnot *\(?\w[\w.]* *[<>]|"
    r"\b(\w[\w.]*) *[!=]= *\1\b"
)
# Variables made of the one that is to blame, that are named.
_NAMED = 2


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the first loss that is not finite, and what around it is not either."""
    lost = lost_mask(run)
    if lost is not None and lost.in_loss:
        return  # of which half-overflow tells
    if run.nonfinite_cause() != "loss" or run.overflowed():
        yield from _results(run)
        return
    loss, listed = run.first_nonfinite_loss(), run.bad_series()
    # A loss that was looked at late is spoiled by weights that were spoiled before: the list knows when.
    late = loss is None or bool(loss.spoiled_weights)
    if loss is not None and (_is_of_lost_eps(run, loss) or is_lowered_later(run, loss)):
        return
    if listed is not None and late:
        yield _of_series(run, listed)
    elif loss is not None:
        yield _of_loss(run, loss)


def _results(run: Run) -> Iterator[Finding]:
    """Numbers on which nobody called `backward()`, in a cell that does not look for them itself."""
    if not run.after.results or run.nonfinite_cause() or run.first_nonfinite_loss() is not None:
        return
    if run.after.failed_weights:
        return
    texts = [one.cell.source for one in (run, *run.earlier)]
    if run.trace.scales() or run.after.extremes or any(map(_ASKS.search, texts)):
        return
    known = {one.path for past in run.earlier for one in past.after.results}
    for path, loss in run.after.results:
        # Without a reason it may be what it should be: an infinite bound, or what an earlier cell was told of.
        again = any(re.search(rf"\b{re.escape(name)}\b", run.cell.source) for name in known - {path})
        if loss.operation is not None or loss.origins or (loss.given == "nan" and not again):
            place = loss.place._replace(cell=run.cell.number)
            yield replace(_told(run, loss, path, place, f"`{path}` is {loss.value}"), severity="hint")


def _is_of_lost_eps(run: Run, loss: LossFact) -> bool:
    """True where weights in float16 were divided by 0 in a step, which training without a loss scaler tells."""
    graphs = ((one, one.witness) for one in run.trace.halves if one.place == loss.place)
    unscaled = [one for one, graph in graphs if graph is not None and graph.float16_leaf_count and not graph.enlarged]
    return bool(loss.spoiled_weights) and loss.index > 1 and any(run.lost_eps(one) is not None for one in unscaled)


def _of_loss(run: Run, loss: LossFact) -> Finding:
    backward = next((one for one in run.trace.backwards if one.place == loss.place), None)
    name = (backward.root if backward is not None else "") or "loss"
    place = backward.made_at if backward is not None else loss.place
    return _told(run, loss, name, place, f"`{name}` was {loss.value} at call {loss.index} of `backward()`")


def _told(run: Run, loss: LossFact, name: str, place: Place, head: str) -> Finding:
    """A number that is not finite, with what is known of the reason."""
    first = _origin(run, name, loss) or _given(run, loss)
    origin = first.fact if first is not None else None
    alone = _is_alone(run, loss, origin)
    told = loss.operation if origin is None or origin.computed else None
    lone = told is not None and _is_lone(run, told, loss)
    place, fix = kept_from_edge(run, None if loss.spoiled_weights else told) or (place, "")
    return Finding(
        message=f"{head}{_because(run, loss, first)}{_SPREAD if alone or lone else ''}.",
        subject=name,
        fix=_of_eps(run, loss)
        or (
            _lone_fix(run)
            if lone
            else _spread_fix(origin)
            if alone
            else with_other_way(fix, told)
            or standardised(run, origin)
            or _softmax_fix(run, origin, loss)
            or _fix(run, origin, name, loss)
        ),
        line=place.line,
        cell=place.cell,
        evidence=(
            Evidence("value", str(loss.value)),
            *(one for origin in loss.origins for one in _counts(origin)),
            *_of_operation(loss.operation),
            *_in_lists(run),
            *(Evidence("weights not finite", run.parameter_path(one.key)) for one in run.after.failed_weights[:1]),
        ),
    )


def _origin(run: Run, name: str, loss: LossFact) -> FirstSpoiled | None:
    """What is not finite and was not computed from weights; else anything but the loss itself."""
    masks = loss.operation is not None
    others = [one for one in loss.origins if one.path != name and not (masks and one.only_masks)]
    given = [one for one in others if not one.computed]
    first = first_spoiled(run, [one for one in given if one.nan_count])
    return first or next((FirstSpoiled(one) for one in (*given, *others)), None)


def _given(run: Run, loss: LossFact) -> FirstSpoiled | None:
    """The only variable of the cell that may be what the graph was given, or is made of, and that holds NaN."""
    found = [one for one in run.after.extremes if one.nan_count and not one.computed] if loss.given == "nan" else []
    return first_spoiled(run, found)


def _because(run: Run, loss: LossFact, first: FirstSpoiled | None) -> str:
    origin = first.fact if first is not None else None
    if loss.spoiled_weights:
        bare = run.without_eps(loss.spoiled_weights)
        if bare is not None:
            return (
                f", and weights were not finite: `{bare.path}` has eps=0, and divides 0 by 0 where a gradient was zero"
            )
        finite = [one.index for one in run.trace.losses if one.place == loss.place and one.order < loss.order]
        since = f"; at call {finite[-1]} all was finite" if finite else ""
        return f", and weights were not finite by then{since}"
    if loss.operation is not None and (origin is None or origin.computed):
        return f": {loss.operation.text()}"
    if origin is None and loss.given:
        return f": {loss.given} is in what its first operation was given"
    if origin is None or first is None:
        return ", from finite weights and finite inputs: a logarithm, root or division met a number that it cannot take"
    infinite = origin.inf_count + origin.negative_inf_count
    parts = [f"{n} {what}" for n, what in ((origin.nan_count, "nan"), (infinite, "infinite values")) if n]
    origin_is = "which was given to it," if not origin.computed else "on the way to it,"
    mask = _mask(run, origin, loss)
    row = f", as the softmax of a row has in which `{mask}` is minus infinity throughout" if mask else ""
    origin_is = f", {origin_is}" if not mask and not first.made else ""
    made = " and ".join(f"`{one}`" for one in first.made[:_NAMED])
    made = f", and {made} {'is' if len(first.made) == 1 else 'are'} made of it" if made else ""
    return f": `{origin.path}`{origin_is} holds {' and '.join(parts)} among {origin.count} values{row}{made}"


def _mask(run: Run, origin: ExtremeFact | None, loss: LossFact) -> str:
    """What has masked whole rows before a softmax, if that is what made the origin NaN."""
    return mask_of(run, origin.path, tuple(one for one in loss.origins if one.only_masks)) if origin is not None else ""


def _masks(run: Run) -> bool:
    """True if a text says that something may be masked."""
    return any(_MASK.search(one.cell.source) for one in (run, *run.earlier))


_SOFTMAXES = frozenset(["softmax", "log_softmax"])
_MASK = re.compile(r"mask|\binf\b|\btri[lu]\b|\bwhere\(|-1e\d", re.IGNORECASE)
_UNBIASED = re.compile(r"unbiased *= *False|correction *= *0")
_SPREAD = "; one value has no spread, so its `std` is nan"


def _of_eps(run: Run, loss: LossFact) -> str:
    """What it takes where a step divided by zero: the usual number, and the weights of before."""
    bare = run.without_eps(loss.spoiled_weights)
    again = run.owner_path(frozenset(one.key for one in loss.spoiled_weights)) or "the model"
    if bare is None:
        return ""
    return f"for group in {bare.path}.param_groups: group['eps'] = 1e-8  # and make `{again}` again"


def _spread_fix(origin: ExtremeFact | None) -> str:
    name = origin.path if origin is not None else "x"
    made = f"{name}.std(correction=0) + 1e-8"
    return f"{made}  # in place of {name}.std(): a number for one value too; or skip what has one value only"


def _softmax_fix(run: Run, origin: ExtremeFact | None, loss: LossFact) -> str:
    """What helps a softmax: of a row that is masked throughout, and of scores that are too large without a mask."""
    if _mask(run, origin, loss):
        return "leave one score of each row unmasked, or mask with a large negative number: -1e9"
    operation = loss.operation if origin is None or origin.computed else None
    if operation is None or operation.name not in _SOFTMAXES or _masks(run):
        return ""
    return (
        "look at what goes into it: scores.isfinite().all(); without a mask, scores beyond 1e38 come from weights or "
        "inputs that are too large: a smaller learning rate, inputs scaled to about 1"
    )


def _fix(run: Run, origin: ExtremeFact | None, name: str, loss: LossFact) -> str:
    operation = loss.operation
    if origin is not None and not origin.computed:
        return (
            sole_divisor(run, origin.path)
            or f"clean the data first: {origin.path}.isfinite().all(), torch.nan_to_num({origin.path})"
        )
    if operation is not None and operation.cause == NO_TARGET:
        asked = f"if {name}.isfinite(): {name}.backward()" if loss.index else "(target != ignore_index).any()"
        return f"leave out what has no target that counts: {asked}"
    if operation is not None and operation.cause == NO_VALUES:
        return f"take it only of what is there: if {'mask.any()' if not loss.index else f'not {name}.isnan()'}"
    if loss.given and not loss.index:
        return ""
    divided = sole_divisor(run) if loss.given == "nan" and operation is None else ""
    if divided:
        return divided
    named = "torch.autograd.set_detect_anomaly(True) may name the operation; " if loss.index else ""
    return (
        usual_fix(operation) or f"{named}keep what log and sqrt get above 0, what / gets apart from 0, before `{name}`"
    )


def _is_alone(run: Run, loss: LossFact, origin: ExtremeFact | None) -> bool:
    """True if one number is nan where the code around the loss asks for its spread: one number has none."""
    if origin is None or origin.computed or (origin.count, origin.nan_count) != (1, 1) or loss.spoiled_weights:
        return False
    name, source = re.escape(origin.path), run.source_of(loss.place.cell)
    asked = re.search(rf"(\b{name}\.(std|var)\(|torch\.(std|var)\({name}\b)(.*)", source)
    return asked is not None and _UNBIASED.search(asked[4]) is None


def _is_lone(run: Run, operation: OperationFact, loss: LossFact) -> bool:
    """The same where the text puts it into a longer expression: each spread in it is nan, of finite numbers."""
    whole = operation.name == "std" and operation.result == "nan" and operation.bad_count == operation.count
    return whole and not loss.spoiled_weights and _UNBIASED.search(run.source_of(loss.place.cell)) is None


def _lone_fix(run: Run) -> str:
    """The statement with the spread that one value has, too."""
    written = sole(run, lambda node: called(node) == "std")
    if written is None or not written.text.endswith(")"):
        return "# std(correction=0): a number for one value too; or skip what has one value only"
    head = written.text[:-1]
    new = f"{head}{'' if head.endswith('(') else ', '}correction=0)"
    stated = in_statement(run, written.place, written.text, new)
    return f"{stated}  # a number for one value too; or skip what has one value only"


def _counts(origin: ExtremeFact) -> Iterator[Evidence]:
    infinite = origin.inf_count + origin.negative_inf_count
    pairs = ((f"nan in {origin.path}", origin.nan_count), (f"infinite values in {origin.path}", infinite))
    yield from (Evidence(label, count, "count") for label, count in pairs if count)


def _of_operation(operation: OperationFact | None) -> Iterator[Evidence]:
    if operation is not None:
        yield Evidence("operation", operation.name)
        if operation.place is not None and operation.place.line is not None:
            yield Evidence("operation at line", operation.place.line)


def _in_lists(run: Run) -> Iterator[Evidence]:
    for one in run.after.series:
        if one.first_bad is not None:
            yield Evidence(f"first number in {one.path} that is not finite", one.first_bad)


def _of_series(run: Run, series: SeriesFact) -> Finding:
    place, one = next((backward.place for backward in run.trace.backwards), Place()), suspect(run)
    return Finding(
        message=(
            f"`{series.path}[{series.first_bad}]` is {series.bad}, and so is what follows: the loss is not finite"
            f"{one.said}."
        ),
        subject=series.path,
        fix=one.fix,
        line=place.line,
        cell=place.cell if place.line is not None else run.cell.number,
        evidence=(
            Evidence("numbers in the list", series.count, "count"),
            *_in_lists(run),
            *((Evidence("last finite number", series.last),) if series.last is not None else ()),
        ),
    )
