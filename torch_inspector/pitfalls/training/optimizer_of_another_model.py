"""The optimizer holds parameters which the loss does not reach."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from torch_inspector.facts import ModuleFact, Run, StepFact
from torch_inspector.facts.copied_weights import copied_from, held_variables
from torch_inspector.facts.rebuilt import rebuilt
from torch_inspector.facts.severed import PUT_IN, cut_models, ends_at_fresh, has_fellow
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_NAMES_SHOWN = 4


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds optimizers that step parameters of an older model, or of a part that has been replaced."""
    parts = _Parts(run)
    # Of these the model is the right one, and `graph-cut` says what is wrong.
    cut_off = {step.optimizer for _, step in cut_models(run)}
    for key, steps in run.steps_by_optimizer().items():
        unreached = [step for step in run.odd_steps(key) if step.unreached]
        if unreached and (key in cut_off or ends_at_fresh(run, steps)):
            continue
        if unreached and not has_fellow(run, steps):
            yield _of_another_model(run, key, unreached)
            continue
        if frozenset[int]().union(*{step.parameter_keys for step in steps}) <= parts.owned:
            continue
        if any(cut.kind in PUT_IN for cut in run.trace.cuts):
            continue  # each pass replaces the part by what another one makes: no optimizer can hold that
        for step in steps:
            replaced = parts.replaced(step)
            if replaced is not None:
                yield _of_an_older_part(run, key, step, replaced)
                break


def _of_another_model(run: Run, key: int, steps: list[StepFact]) -> Finding:
    step = steps[0]
    owner = _owner(run, step.leaf_keys)
    called_as = owner.path if owner else _called_as(run, step)
    # A model that only a method knows goes with the optimizer as that method calls it.
    own = step.name if called_as.startswith("self.") and step.name.startswith("self.") else ""
    name = own or _target(run, step)
    trained = f"`{called_as}`" if called_as else "other parameters"
    right = _right_one(run, step)
    holder = _owner(run, step.parameter_keys)
    # Of modules that were not called the parameters are not known.
    called = {call.module for call in run.trace.forwards}
    known = all(module.parameter_keys or module.key in called for module in run.after.modules)
    unnamed = "parameters that no variable leads to, of an older model" if known else "parameters of another model"
    held = f"those of `{holder.path}`" if holder else _variables(run, step) or unnamed
    if holder and owner and holder.path == owner.path:
        frozen = step.frozen_count >= step.parameter_count
        held = f"{'frozen' if frozen else 'other'} parameters of `{holder.path}`"
        trained = _named(owner, step.leaf_keys)
    return Finding(
        message=(
            f"`{name}` holds {held}, but the loss trains {trained}{f', which `{right}` holds' if right else ''}: "
            f"{_since(run, step)}`{name}.step()` changed nothing of what the loss reaches."
        ),
        subject=name,
        fix=_of_right_one(run, step, name) or rebuilt(run, key, name, called_as),
        line=step.place.line,
        cell=step.place.cell,
        evidence=(
            Evidence("parameters in the optimizer", len(step.parameter_keys), "count"),
            Evidence("parameters the loss reaches", len(step.leaf_keys), "count"),
            Evidence("in both", 0, "count"),
            Evidence("steps like this, of those looked at", len(steps), "count"),
        ),
    )


def _right_one(run: Run, step: StepFact) -> str:
    """The other optimizer that holds all that the loss reaches, where the notebook has one and never steps it."""
    stepped = run.steps_by_optimizer()
    others = [one for one in run.after.optimizers if one.key != step.optimizer and one.key not in stepped]
    found = [one.path for one in others if one.path and step.leaf_keys and step.leaf_keys <= one.parameter_keys]
    return found[0] if len(found) == 1 else ""


def _of_right_one(run: Run, step: StepFact, name: str) -> str:
    right = _right_one(run, step)
    return f"{right}.step()  # in place of {name}.step(); and {right}.zero_grad()" if right else ""


def _variables(run: Run, step: StepFact) -> str:
    """Tensors outside of any module, as the notebook calls them, and what they were copied from."""
    names = held_variables(run, step.parameter_keys)
    model = copied_from(run, names.strip("`")) if names else ""
    return f"{names}, copies of the parameters of `{model}`" if model else names


def _target(run: Run, step: StepFact) -> str:
    """What has to be made anew for the step to be another one: `learner.opt`, though `opt` is the same optimizer."""
    return step.path or run.optimizer_path(step.optimizer) or "optimizer"


def _called_as(run: Run, step: StepFact) -> str:
    """What the code called the model that was trained, where no variable leads to it after the cell."""
    calls = (call for call in run.trace.forwards if step.leaf_keys and step.leaf_keys <= call.parameter_keys)
    return next((call.name for call in calls if call.name), "")


def _since(run: Run, step: StepFact) -> str:
    """From when on, if the loss had reached the optimizer's parameters earlier in the cell."""
    own = [one for one in run.steps_by_optimizer()[step.optimizer] if one.order < step.order]
    if not any(one.leaf_keys & one.parameter_keys for one in own):
        return ""
    calls = (call for call in run.trace.forwards if call.training and call.grad_enabled and call.order < step.order)
    passes = sum(call.count for call in calls if call.parameter_keys & step.parameter_keys)
    gone = _owner(run, step.parameter_keys) is None
    return f"after {passes} passes of that model in this cell, " if passes and gone else "after its first steps here, "


def _named(module: ModuleFact, keys: frozenset[int]) -> str:
    """Some parameters of a module, as the user may type them."""
    return ", ".join(
        [f"`{module.path}.{label}`" for key, label in module.parameter_names if key in keys][:_NAMES_SHOWN]
    )


class _Replaced(NamedTuple):
    """A part that was replaced after the optimizer was made."""

    module: ModuleFact
    missing: frozenset[int]
    """Parameters of the module that get gradients and are in no optimizer."""
    orphans: frozenset[int]
    """Parameters of the optimizer that no module has any more."""


class _Parts:
    """Who trains, holds and owns which parameters: the same for all steps of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.modules = run.after.modules
        self.owned = frozenset[int]().union(*(module.parameter_keys for module in self.modules))

    @cached_property
    def trained(self) -> frozenset[int]:
        """Parameters that the backward calls before some step reached."""
        return frozenset[int]().union(*(step.leaf_keys for step in self._run.trace.steps))

    @cached_property
    def held(self) -> frozenset[int]:
        """Parameters that some optimizer holds."""
        run = self._run
        optimizers = (optimizer.parameter_keys for optimizer in run.after.optimizers)
        return frozenset[int]().union(*optimizers, *(step.parameter_keys for step in run.trace.steps))

    def replaced(self, step: StepFact) -> _Replaced | None:
        """The part whose new parameters a step leaves out, while it moves some that no module has."""
        orphans = step.parameter_keys - self.trained - self.owned
        if not orphans or step.has_closure or not step.parameter_keys & step.leaf_keys:
            return None
        for module in self.modules:
            missing = (step.leaf_keys & module.parameter_keys) - self.held
            if missing and module.path:
                return _Replaced(module, missing, orphans)
        return None


def _of_an_older_part(run: Run, key: int, step: StepFact, replaced: _Replaced) -> Finding:
    module, missing, orphans = replaced
    name = run.optimizer_path(key) or "optimizer"
    shown = _named(module, missing)
    return Finding(
        message=(
            f"`{name}` still holds {len(orphans)} parameter{'s' * (len(orphans) > 1)} of a part "
            f"that `{module.path}` no longer has, "
            f"and lacks {shown}: {'these get' if len(missing) > 1 else 'it gets'} gradients and never "
            f"{'move' if len(missing) > 1 else 'moves'}."
        ),
        subject=name,
        fix=rebuilt(run, key, _target(run, step), module.path),
        line=step.place.line,
        cell=step.place.cell,
        evidence=(
            Evidence("held for nobody", len(orphans), "count"),
            Evidence("missing", shown.replace("`", "")),
        ),
    )


def _owner(run: Run, keys: frozenset[int]) -> ModuleFact | None:
    """The smallest named module that owns all these parameters, or any that owns some."""
    some = [m for m in run.after.modules if m.path and m.parameter_keys & keys]
    every = [m for m in some if keys <= m.parameter_keys]
    return min(every or some, key=lambda m: len(m.parameter_keys), default=None)
