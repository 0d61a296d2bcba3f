"""Modes that are set for training, and an `eval()` that a `train()` undoes before the module is asked anything."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.wanted_noise import is_noise_named

if TYPE_CHECKING:
    from torch_inspector.facts.forwards import ForwardFact, ModeFact
    from torch_inspector.facts.run import Run

# Names of functions that want a model as it is while it learns.
_TRAINS = re.compile(r"(^|_)(train|fit|augment|views?)", re.IGNORECASE)


def last_training(run: Run, before: int | None = None) -> int:
    """Position of the last step or backward call that was looked at; 0 if there is none."""
    orders = [*(step.order for step in run.trace.steps), *(backward.order for backward in run.trace.backwards)]
    return max((order for order in orders if before is None or order < before), default=0)


def begins_training(mode: ModeFact, run: Run) -> bool:
    """True if the same line sets the mode for training too, as in a function for both kinds of epochs."""
    for other in run.trace.modes:
        if other.place == mode.place and other.module == mode.module:
            following = min((m.order for m in run.trace.modes if m.order > other.order), default=None)
            if last_training(run, following) > other.order:
                return True
    return False


def undoing(call: ForwardFact, run: Run) -> ModeFact | None:
    """The `train()` that came behind an `eval()`, before the module was asked anything, and was not meant to."""
    here = [m for m in run.trace.modes if m.module == call.module and m.order < call.order]
    if len(here) < 2 or not here[-1].training or here[-2].training:  # noqa: PLR2004
        return None
    asleep, awake = here[-2].order, here[-1].order
    # A part of it, or what holds it, may be what is asked in its place.
    asleep_calls = (f for f in run.trace.forwards if f.module == call.module or f.parameter_keys & call.parameter_keys)
    asked = any(f.order < awake and f.last_order > asleep for f in asleep_calls)
    trained = any(asleep < step.order < awake for step in run.trace.steps)
    if asked or trained or _is_noise_wanted(call, here[-1], run) or not _is_a_slip(here[-2], here[-1], run):
        return None
    return here[-1]


def _is_noise_wanted(call: ForwardFact, awake: ModeFact, run: Run) -> bool:
    """True where the text that wakes the module says what for, and where the function that does asks it itself.

    Such a function asks one question several times; or it goes back to `eval()` afterwards, or has a name for training:
    these two say nothing where BatchNorm is awake, which each call moves.
    """
    if is_noise_named(call, awake, run):
        return True
    scopes = {call.place.scope, *(caller.place.scope for caller in call.callers)}
    if not awake.place.function or awake.place.scope not in scopes:
        return False
    later = [m for m in run.trace.modes if m.module == call.module and m.order > call.order and not m.training]
    back = any(m.place.scope == awake.place.scope for m in later)
    several = (call.same_input and call.count > 1) or _is_written_twice(call, run)
    normed = any("Norm" in kind for kind, _ in call.awake)
    return several or (not normed and (back or _TRAINS.search(awake.place.function) is not None))


def _is_written_twice(call: ForwardFact, run: Run) -> bool:
    """True if the function that asks says the same call again: `m(x), m(x)`."""
    tree = syntax.parse(run.source_of(call.place.cell))
    scope = syntax.scope_at(tree, call.place.line) if tree is not None and call.place.line is not None else None
    calls = [one for one in syntax.own_expressions(scope) if isinstance(one, ast.Call)] if scope is not None else []
    texts = [ast.unparse(one) for one in calls if ast.unparse(one.func) == call.name]
    return len(set(texts)) < len(texts)


def _is_a_slip(asleep: ModeFact, awake: ModeFact, run: Run) -> bool:
    """True for modes of two functions, and for a `train()` with no training behind it, which has one of its own."""
    if awake.place.function not in (asleep.place.function, ""):
        return True
    if awake.place.function != asleep.place.function:
        return False
    others = (m for m in run.trace.modes if m.training and m.module == awake.module and m.place != awake.place)
    return not begins_training(awake, run) and any(begins_training(one, run) for one in others)
