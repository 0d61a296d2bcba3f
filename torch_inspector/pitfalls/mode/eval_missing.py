"""Inference with the model still in train mode."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, LayerCounts, ModeFact, Place, Run, only_reads_outputs
from torch_inspector.facts.asked import asked_together
from torch_inspector.facts.dropped import is_dropped, is_last_shown, is_only_measured, is_only_run
from torch_inspector.facts.part_left import PartLeft, part_left
from torch_inspector.facts.teachers import awake_teachers, counted, stays
from torch_inspector.facts.undone import begins_training as _begins_training
from torch_inspector.facts.undone import last_training as _last_training
from torch_inspector.facts.undone import undoing as _undoing
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# Files of torch whose calls run train mode without gradients on purpose: batch statistics for averaged weights, and
# checkpointed layers, which run again with gradients in the backward pass.
_ON_PURPOSE = ("torch.optim.swa_utils", "torch.utils.checkpoint")
# Who writes this makes fresh batch statistics, and the calls of the model are there for that.
_FRESH_STATISTICS = re.compile(r"\breset_running_stats\b|\.momentum\s*=[^=]")

# What torch says when a loss has no history.
_NO_HISTORY = "does not require grad and does not have a grad_fn"
# Functions that measure. Those that sample with dropout say so in their names.
_MEASURES = re.compile(
    r"^_?(run_)?(eval|evaluate|evaluation|validate|validation|valid|val|test)(_(one_)?(epoch|model|step|loop|net))?$"
)
# Fewer answers to one question are no sample of anything; they may be a look at whether they agree.
_SAMPLES = 5
# Lines that are named beside the first.
_LINES = 6


@pitfall(severity="warning", yields_to=("frozen-batchnorm-drifts",))
def check(run: Run) -> Iterator[Finding]:
    """Finds predictions of a trained module whose dropout or batch statistics are on."""
    yield from _of_teachers(run)
    lines: dict[Place, list[ForwardFact]] = {}
    for call in run.trace.forwards:
        if _is_asked_in_train_mode(call, run) and _is_prediction(call, run):
            lines.setdefault(call.place, []).append(call)
    # A line that asks several models in turn is one mistake, and so are several lines that ask one model.
    found: dict[tuple[int, int | None, str], list[ForwardFact]] = {}
    for place, calls in lines.items():
        found.setdefault((calls[0].module, place.cell, place.function), []).extend(calls)
    for calls in found.values():
        yield _finding(run, calls)


def _is_prediction(call: ForwardFact, run: Run) -> bool:
    """True if nothing learns from it, as far as is known."""
    if call.grad_enabled:
        return _result_is_gone(call, run)
    return not _is_part_of_step(call, run) and not _was_to_train(call, run)


def _of_teachers(run: Run) -> Iterator[Finding]:
    """Of models that others learn from: called by themselves, or as a part of the model that learns."""
    awake = [(call, part) for call in run.trace.forwards if call.teachers for part in awake_teachers(call, run)]
    told: set[str] = set()
    for call, part in awake if awake and stays(run) else ():
        outer = run.path_of(call)
        name = f"{outer}.{part.path}" if part.path else outer
        if name not in told and (part.path or not _is_chosen(call, run)):
            told.add(name)
            yield _of_teacher(call, name, part.awake)


def _is_chosen(call: ForwardFact, run: Run) -> bool:
    """True if this cell has put the model into train mode, or the noise of some layers only is on."""
    here = [m for m in run.trace.modes if m.module == call.module and m.order < call.order]
    return bool(here and here[-1].training) or _was_meant(call, run)


def _of_teacher(call: ForwardFact, name: str, awake: LayerCounts) -> Finding:
    outer = name.rpartition(".")[0]
    are = "is" if sum(count for _, count in awake) == 1 else "are"
    return Finding(
        message=(
            f"`{name}` answers in train mode, and others learn from it: {counted(awake)} {are} active, so what it "
            "teaches depends on chance or on the rest of the batch."
        ),
        subject=name,
        fix=f"{name}.eval()  # {f'after each {outer}.train()' if outer else 'before the loop'}",
        line=call.place.line,
        cell=call.place.cell,
        # Whether the loss is made of its answers no graph tells: it may be there for comparison.
        severity="hint",
        evidence=(Evidence("layers in train mode", counted(awake)), Evidence("steps of an optimizer that holds it", 0)),
    )


def _is_asked_in_train_mode(call: ForwardFact, run: Run) -> bool:
    if not call.training or not call.awake or call.caller in _ON_PURPOSE:
        return False
    if _is_repeated(call, run) and call.count >= _SAMPLES:
        return False
    if _undoing(call, run) is not None:
        return not call.grad_enabled and not _is_dropped(run, call)
    if call.copy_of and (_was_meant(call._replace(module=call.copy_of), run) or _is_dropped(run, call)):
        return False  # the copy has the mode that was chosen for the original
    # A pass whose answer nobody wants changes batch statistics, and nothing else.
    idle = not any("Norm" in kind for kind, _ in call.awake) and _is_for_nobody(run, call)
    return call.trained and not _was_meant(call, run) and not idle


def _is_for_nobody(run: Run, call: ForwardFact) -> bool:
    """True if the line drops the answer, and no hook has looked on."""
    return not call.hooked and is_only_run(run, call)


def _is_dropped(run: Run, call: ForwardFact) -> bool:
    return is_dropped(run, call) or is_only_run(run, call)


def _is_repeated(call: ForwardFact, run: Run) -> bool:
    """True if the same input was asked about again and again, without steps in between."""
    return call.same_input and call.count > 1 and not _steps_between(call, run)


def _steps_between(call: ForwardFact, run: Run) -> int:
    """Steps between the two calls that were looked at."""
    return sum(call.order < step.order < call.last_order for step in run.trace.steps)


# meant ----------------------------------------------------------------------


def _was_meant(call: ForwardFact, run: Run) -> bool:
    """True if train mode was chosen for these calls: sampling, or fresh batch statistics."""
    if any("Norm" in name for name, _ in call.awake) and _makes_statistics(call, run):
        return True
    if _set_since_training(call, run):
        return True
    own = _last_training(run, call.order)
    others = (m for m in run.trace.modes if own < m.order < call.order and not m.training and m.module != call.module)
    # Monte-Carlo dropout: the normalisation sleeps.
    return bool(call.asleep) and _is_apart(call) and any(others) and part_left(run, call, own) is None


def _is_apart(call: ForwardFact) -> bool:
    """False where layers of one kind sleep and are awake: a part was forgotten."""
    return not {kind for kind, _ in call.awake} & {kind for kind, _ in call.asleep}


def _makes_statistics(call: ForwardFact, run: Run) -> bool:
    cells = {caller.place.cell for caller in call.callers} | {call.place.cell}
    texts = [run.cell.code, *(past.cell.code for past in run.earlier if past.cell.number in cells)]
    return any(_FRESH_STATISTICS.search(text) for text in texts)


def _set_since_training(call: ForwardFact, run: Run) -> bool:
    """True if the latest event before the calls, of training and of setting the mode, was `train()`."""
    here = [m for m in run.trace.modes if m.module == call.module and m.order < call.order]
    trained = _last_training(run, call.order)
    if here:
        measuring = _MEASURES.match(here[-1].place.function) is not None
        begins = (_begins_training(here[-1], run) or _trained_there(call, here[-1], run)) and not is_dropped(run, call)
        return here[-1].training and here[-1].order > trained and not measuring and not begins
    for past in reversed(run.earlier if not trained else ()):
        modes = [m for m in past.trace.modes if m.module == call.module]
        ended = _last_training(past)
        if modes and modes[-1].order > ended:
            return modes[-1].training and not _begins_training(modes[-1], past)
        if ended:
            return False
    return False


def _trained_there(call: ForwardFact, mode: ModeFact, run: Run) -> bool:
    """True if the function that sets the mode and makes the calls has trained in an earlier cell: it is for both."""
    where = mode.place.scope
    own = bool(mode.place.function) and where == call.place.scope
    return own and any(_begins_training(mode, past) for past in run.earlier)


# part of training -----------------------------------------------------------


def _is_part_of_step(call: ForwardFact, run: Run) -> bool:
    """True for passes that feed each training step (pseudo-labels, targets of a momentum copy)."""
    steps = run.trace.steps
    if not steps:
        return False
    if not any(step.parameter_keys & call.parameter_keys for step in steps):
        return True
    between = _steps_between(call, run)
    if call.order < steps[0].order and (between == 1 or call.count == 1):
        return True
    return run.trace.feeds_training(call) and not _line_trains_too(call, run)


def _was_to_train(call: ForwardFact, run: Run) -> bool:
    """True for a training pass that found gradients left off: there is a loss behind it, and `eval()` would do harm."""
    failed = run.error is not None and _NO_HISTORY in run.error.message
    if failed and (not run.before.grad_enabled or call.last_order == max(one.last_order for one in run.trace.forwards)):
        return True
    return not run.after.grad_enabled and _line_trains_too(call, run)


def _line_trains_too(call: ForwardFact, run: Run) -> bool:
    """True if the same line is called with gradients for training, and here without: `set_grad_enabled(train)`."""
    return any(f.place == call.place and f.module == call.module and f.grad_enabled for f in run.trace.forwards)


# gone -----------------------------------------------------------------------


def _result_is_gone(call: ForwardFact, run: Run) -> bool:
    """True if no backward will follow: none came after the call, and no graph is left behind that is not just read."""
    if call.followed or run.error is not None or call.hooked:
        return False
    if any(step.order > call.order for step in run.trace.steps):
        return False
    kept = any(graph.newest_nodes and not graph.spent for graph in run.after.graphs) or not run.after.complete
    gone = not kept or only_reads_outputs(run)
    return call.output_requires_grad and not call.input_requires_grad and gone


def _is_generator(call: ForwardFact, run: Run) -> bool:
    """True if only the normalisation is awake and a model with an optimizer of its own judges what this one makes.

    Pictures of the progress are then often made as in training, from a batch of noise.
    """
    if not call.only_norms:
        return False
    for one in (run, *run.earlier):
        others = [step.parameter_keys for step in one.trace.steps if not step.parameter_keys & call.parameter_keys]
        reached = [made.witness.leaf_keys for made in one.trace.backwards if made.witness is not None]
        if any(keys & call.parameter_keys and any(keys & other for other in others) for keys in reached):
            return True
    return False


def _cause(call: ForwardFact) -> str:
    normed = ["Norm" in kind for kind, _ in call.awake]
    causes = ("chance",) * (not all(normed)) + ("the rest of the batch",) * any(normed)
    return " and on ".join(causes)


def _finding(run: Run, calls: list[ForwardFact]) -> Finding:
    call, asked = calls[0], asked_together(run, calls)
    others = [place for place in dict.fromkeys(one.place for one in calls) if place != call.place]
    layers = ", ".join(f"{count} {kind}" for kind, count in call.awake)
    off = "gradients are off" if not call.grad_enabled else "nothing is trained here"
    are = "is" if sum(count for _, count in call.awake) == 1 else "are"
    each = "" if not asked.several else " in each" if len({one.awake for one in calls}) == 1 else " in the first"
    undoing = _undoing(call, run)
    left = part_left(run, call, _last_training(run, call.order))
    back = f"{left.awake}.train()" if left is not None else asked.switched("train")
    where = f" in `{left.awake}`, where `{left.text}` does not reach," if left is not None else ""
    before = f"in place of train() in {undoing.place.said_in(call.place.cell)}" if undoing else "before predicting"
    undone = f" after `train()` in {undoing.place.said_in(call.place.cell)} had undone `eval()`" if undoing else ""
    return Finding(
        message=(
            f"{asked.listed()} {'were' if asked.several else 'was'} asked for predictions in train mode "
            f"({off}){undone}: {layers}{where} {are} active{each}, so results depend on {_cause(call)}."
        ),
        subject=asked.names[0],
        fix=f"{asked.switched('eval')}   # {before}\n{back}  # before training goes on",
        line=call.place.line,
        cell=call.place.cell,
        severity="hint" if _is_perhaps_meant(run, call, left) else "",
        evidence=(
            Evidence("module", f"{asked.names[0]} ({call.kind})"),
            *((Evidence("modules in train mode", len(asked.names), "count"),) if asked.several else ()),
            Evidence("layers in train mode", layers),
            Evidence("gradients recorded", "yes" if call.grad_enabled else "no"),
            *(() if call.by_name else (Evidence("calls from this line", call.count, "count"),)),
            *((Evidence("also at lines", _lines_of(others)),) if others else ()),
        ),
    )


def _is_perhaps_meant(run: Run, call: ForwardFact, left: PartLeft | None) -> bool:
    chosen = (left is not None and _is_apart(call)) or (call.only_norms and is_last_shown(run, call))
    # A copy may have been changed before it is trained, and a mode set for another part may be meant for that one.
    unsure = bool(call.copy_of) or _undoing(call, run) is not None or _is_for_nobody(run, call)
    unsure = unsure or is_only_measured(run, call)
    return chosen or unsure or call.grad_enabled or _is_repeated(call, run) or _is_generator(call, run)


def _lines_of(places: list[Place]) -> str:
    """Numbers of their lines, the first few."""
    lines = [str(place.line) for place in places if place.line is not None]
    more = f" and {len(lines) - _LINES} more" if len(lines) > _LINES else ""
    return ", ".join(lines[:_LINES]) + more
