"""A sum of signed differences as loss."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite

from torch_inspector.facts import BackwardFact, LossFact, PatternFact, Place, Run, reading
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Objectives that have no lowest value on purpose, by the words that people use for them.
_ON_PURPOSE = re.compile(
    r"critic|disc|fake|real|energy|adv|reward|return|log|kl|entropy|margin|ref|wasser|baseline|budget|limit|penal|detach",
    re.IGNORECASE,
)


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds losses that are reduced differences of predictions and targets, and with which an optimizer stepped."""
    seen: set[Place] = set()
    for backward in run.trace.patterned:
        if backward.made_at not in seen and _is_signed(backward) and _is_stepped(run, backward):
            seen.add(backward.made_at)
            lines = (reading.line_at(run, place) for place in (backward.made_at, backward.place))
            if not _ON_PURPOSE.search(" ".join((backward.root, *lines))):
                yield _finding(run, backward)


def _is_signed(backward: BackwardFact) -> bool:
    return bool(_patterns(backward)) and not backward.is_grad_call


def _patterns(backward: BackwardFact) -> list[PatternFact]:
    patterns = backward.witness.patterns if backward.witness is not None else ()
    return [one for one in patterns if one.name == "signed-differences"]


def _is_stepped(run: Run, backward: BackwardFact) -> bool:
    reached = backward.leaf_keys
    return any(step.parameter_keys & reached and not step.idle for step in run.trace.steps)


def _finding(run: Run, backward: BackwardFact) -> Finding:
    losses = [one for one in run.trace.losses if one.place == backward.place and isfinite(one.value)]
    negative = any(one.value < 0 for one in losses)
    shape = next((one.shapes[0] for one in _patterns(backward) if one.shapes), ())
    return Finding(
        message=(
            f"{f'`{backward.root}`' if backward.root else 'the loss'} adds up differences of shape {shape} with their "
            "signs: what is above the target cancels what is below, and there is no lowest value"
            f"{_course(losses) if negative else ''}."
        ),
        subject=backward.root or "loss",
        fix="nn.functional.mse_loss(prediction, target)  # or l1_loss: each error counts, whatever its sign",
        line=backward.made_at.line,
        cell=backward.made_at.cell,
        severity="" if negative else "hint",
        evidence=(
            Evidence("operations from the loss on", " <- ".join(_patterns(backward)[0].nodes)),
            *(Evidence(f"loss of call {one.index}", one.value) for one in (*losses[:1], *losses[1:][-1:])),
        ),
    )


def _course(losses: list[LossFact]) -> str:
    first, last = losses[0], losses[-1]
    if first is last:
        return f" (it is {first.value:.3g})"
    return f" (from {first.value:.3g} to {last.value:.3g} in {last.index} backward calls)"
