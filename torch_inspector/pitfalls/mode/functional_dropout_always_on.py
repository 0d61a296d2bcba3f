"""`F.dropout` that is not told the mode, dropout layers that are made in a pass, and attention that always drops."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import DropoutFact, ForwardFact, Place, Run
from torch_inspector.facts.replaced import in_statement
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Fewer answers to one question are no sample of anything; they may be a look at whether they agree.
_SAMPLES = 5
# Who writes one of these words wants dropout to go on.
_WANTED = re.compile(r"\bmonte|\bmc[_ -]?(drop|sampl|pass|infer)|uncertain|bayes|ensemble", re.IGNORECASE)
# Who says `training=True` may want several answers of which these speak.
_SPREAD = re.compile(r"samples|passes|\.(std|var)\(|stochastic|noise|noisy|augment", re.IGNORECASE)
_WANTED_CLASS = re.compile(r"^MC|Monte|Bayes|Always|Stochastic|Concrete|Variational|Locked")


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds such calls in the code of a module that was asked in eval mode, or without gradients after training."""
    said: set[Place] = set()
    for call in run.trace.forwards:
        if not call.dropouts or call.drew is False or not _expects_answers(call, run):
            continue
        for drop in call.dropouts:
            if drop.place not in said and not _is_wanted(call, drop, run):
                said.add(drop.place)
                yield _finding(run, call, drop)


def _expects_answers(call: ForwardFact, run: Run) -> bool:
    if call.same_input and call.count >= _SAMPLES:
        return False
    if not call.training:
        return True
    return not call.grad_enabled and call.trained and not run.trace.steps


def _is_wanted(call: ForwardFact, drop: DropoutFact, run: Run) -> bool:
    cells = {caller.place.cell for caller in call.callers} | {call.place.cell, drop.place.cell}
    texts = [run.cell.source, *(past.cell.source for past in run.earlier if past.cell.number in cells)]
    if drop.told and (
        not _has_dropped(call, drop) or call.training or _is_remarked(run, drop) or any(map(_SPREAD.search, texts))
    ):
        return True
    return _WANTED_CLASS.search(drop.kind) is not None or any(_WANTED.search(text) for text in texts)


def _has_dropped(call: ForwardFact, drop: DropoutFact) -> bool:
    """True if random numbers were drawn that nothing else can have drawn."""
    return bool(call.drew) and drop.alone


def _is_remarked(run: Run, drop: DropoutFact) -> bool:
    """True if a comment stands on the line or above it: somebody has thought of it."""
    lines = ["", *run.source_of(drop.place.cell).splitlines()]
    line = drop.place.line or 0
    return "#" in lines[line] or lines[line - 1].lstrip().startswith("#") if 0 < line < len(lines) else False


def _finding(run: Run, call: ForwardFact, drop: DropoutFact) -> Finding:
    name = run.path_of(call)
    mode = "was in train mode without gradients" if call.training else "was in eval mode"
    drew = _has_dropped(call, drop)
    sure = drew and not call.training
    unsure = bool(call.drew) and not drew and drop.tested
    seen = "and the call drew random numbers" if drew else "and nothing tells the function so"
    return Finding(
        message=f"{_what(drop)} drops in every mode: `{name}` {mode}, {seen}.",
        subject=name,
        fix=_fixed(run, drop),
        line=drop.place.line,
        cell=drop.place.cell,
        # Told to, it may be meant: then each answer is one of many.
        severity="hint" if drop.told or call.copy_of or unsure else "" if sure else "warning",
        evidence=(
            Evidence("module", f"{name} ({call.kind})"),
            Evidence("layer", drop.kind),
            Evidence("call", drop.text),
            Evidence("asked in", f"line {call.place.line}" if call.place.line else "another file"),
            Evidence("random numbers drawn", {True: "yes", False: "no", None: "not looked at"}[call.drew]),
            Evidence("calls from this line", call.count, "count"),
        ),
    )


def _what(drop: DropoutFact) -> str:
    made = ", made anew in each pass and so always in train mode," if drop.is_layer else ""
    return f"`{drop.text if drop.is_layer or drop.told else drop.name}` in `{drop.kind}`{made}"


def _fixed(run: Run, drop: DropoutFact) -> str:
    """The statement with the argument that the call lacks, where that is written on its own and ends in a bracket."""
    own = drop.own if drop.place.function == "forward" else "self"
    if drop.is_layer:
        return f"{own}.dropout = {drop.text}  # in __init__, where eval() finds it; then call {own}.dropout"
    if drop.rate:
        return f"dropout_p={drop.rate} if {own}.training else 0.0"
    if drop.told and drop.place.function == "forward":
        return in_statement(run, drop.place, drop.text, drop.told)
    if not drop.text.endswith(")") or drop.place.function != "forward":
        return f"hand {own}.training on to {drop.name}(..., training=...)"
    return in_statement(run, drop.place, drop.text, f"{drop.text[:-1]}, training={own}.training)")
