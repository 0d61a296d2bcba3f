"""Nothing behind the loss, or in the optimizer, wants a gradient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ErrorFact, ForwardFact, Place, Run, StepFact, restated, syntax
from torch_inspector.facts.blind_loss import blind_loss
from torch_inspector.facts.bound_in import bound_in, lacked_gradients
from torch_inspector.facts.covering import covering
from torch_inspector.facts.rebuilt import last_made
from torch_inspector.findings import Evidence, Finding, all_of
from torch_inspector.pitfall import pitfall

_WITHOUT_HISTORY = "element 0 of tensors does not require grad"
_NO_PARAMETERS = "optimizer got an empty parameter list"
_A_METHOD = "'method' object is not iterable"
_PARAMETERS = re.compile(r"\b[\w.]+\.(?:named_)?parameters\b(?!\s*\()")
# A step without gradients can be made for the sake of a schedule; three in a row, and all of the cell, are training.
_STEPS = 3
# Ways to layers that do not name them: `getattr(self, f"head_{task}")`.
_BY_NAME = frozenset(
    ["_modules", "__dict__", "__getattr__", "get_submodule", "modules", "named_modules", "children", "named_children"]
)
# A longer line is not read at a glance.
_LONGEST = 110
# Variables that are named one by one.
_NAMED = 4


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds losses behind which everything is frozen, and optimizers of frozen or of no parameters."""
    if run.error is None:
        yield from _frozen_optimizers(run)
    elif run.error.message.startswith(_WITHOUT_HISTORY) and not run.error.cuts + run.error.constants:
        made = bound_in(run)
        own = [call for call in run.trace.forwards if call.parameter_keys]
        calls = own or [call for call in made.trace.forwards if call.parameter_keys]
        # A parameter that was rebound is told of as that, a block without gradients as what cut it off.
        told = any(one.in_no_grad and not one.looped for one in run.trace.rebinds) or _is_cut_by_checkpoint(run)
        told = told or any(call.output_requires_grad or not call.grad_enabled for call in calls)
        told = told or (run.after.grad_enabled and blind_loss(run) is not None)
        if not told and (_all_frozen(run, calls) or not any(map(lacked_gradients, (run, made)))):
            yield _without_history(run, calls)
    elif run.error.message.startswith(_NO_PARAMETERS) and all(one.loose for one in run.after.unlisted):
        yield _empty(run, run.error)
    elif run.error.kind == "TypeError" and _A_METHOD in run.error.message:
        yield from _uncalled(run.error)


def _uncalled(error: ErrorFact) -> Iterator[Finding]:
    """`SGD(net.parameters, lr=0.1)`: the optimizer was given the method."""
    text = error.expression
    name = next(iter(_PARAMETERS.findall(text)), "")
    if name:
        yield Finding(
            message=f"`{name}` without parentheses is a method: the optimizer wants what it gives.",
            subject=name,
            fix=restated(error, text.replace(name, f"{name}()", 1)),
            line=error.place.line,
            cell=error.place.cell,
            evidence=(Evidence("call", text),),
        )


def _all_frozen(run: Run, calls: list[ForwardFact]) -> bool:
    """True if what wants no gradient is known, so that gradients that were off are not the reason."""
    held = run.error.refusal.frozen if run.error is not None and run.error.refusal is not None else ()
    return bool(held) or (bool(calls) and not any(call.trainable_count for call in calls))


def _is_cut_by_checkpoint(run: Run) -> bool:
    """True if the old checkpoint() ran parameters without history."""
    return any(one.parameter_keys and one.training and not one.fed for one in run.trace.checkpoints)


def _without_history(run: Run, calls: list[ForwardFact]) -> Finding:
    place = run.error.place if run.error is not None else None
    root = (run.error.root if run.error is not None else "") or "loss"
    held = run.error.refusal.frozen if run.error is not None and run.error.refusal is not None else ()
    if held:
        return _of_tensors(root, held, place)
    frozen = [call for call in calls if not call.trainable_count]
    unused = _unused(run, calls) if calls and not frozen else None
    if unused is not None:
        return _of_unused(run, root, unused, place)
    if calls and not frozen:
        return _of_lost(run, root, calls[0], place)
    name, keys = _frozen_whole(run, frozen) if frozen else ("", frozenset[int]())
    count = len(keys)
    why = _without_gradients(count, name) if frozen else "no tensor that it was computed from has `requires_grad=True`"
    return Finding(
        message=f"there is nothing to train behind `{root}`: {why}.",
        subject=name or root,
        fix=_thawed(run, name, keys),
        line=place.line if place is not None else None,
        cell=place.cell if place is not None else None,
        evidence=(
            Evidence("modules called", len(calls), "count"),
            Evidence("parameters that want a gradient", 0, "count"),
            Evidence("parameters", count, "count"),
        ),
    )


def _of_lost(run: Run, root: str, call: ForwardFact, place: Place | None) -> Finding:
    """Of a model that is to learn, whose result has no history all the same."""
    name = run.name_of(call)
    return Finding(
        message=(
            f"there is nothing to train behind `{root}`: what `{name}` gave has no history, though "
            f"{call.trainable_count} of its parameters want a gradient."
        ),
        subject=root,
        fix=f"# look for no_grad, detach(), .data, .item() and NumPy inside of {name}, and in its decorators",
        line=place.line if place is not None else None,
        cell=place.cell if place is not None else None,
        evidence=(Evidence("parameters that want a gradient", call.trainable_count, "count"),),
    )


def _frozen_whole(run: Run, frozen: list[ForwardFact]) -> tuple[str, frozenset[int]]:
    """What was called and is frozen: the smallest model with all the parts that were called, else the first of them."""
    first, keys = frozen[0], frozenset[int]().union(*(call.parameter_keys for call in frozen))
    if keys == first.parameter_keys:
        return run.name_of(first), keys
    wholes = [one for one in run.after.modules if one.path and keys <= one.parameter_keys <= one.frozen_keys]
    whole = min(wholes, key=lambda one: (len(one.parameter_keys), "[" in one.path), default=None)
    if whole is not None:
        return whole.path, whole.parameter_keys
    return run.name_of(first), first.parameter_keys


def _unused(run: Run, calls: list[ForwardFact]) -> tuple[str, tuple[str, ...], int] | None:
    """A called model that has parts which want gradients, those parts, and how many parameters want none."""
    modules = (run.after.module(call.module) for call in calls)
    module = next((one for one in modules if one is not None and one.path and one.frozen_keys), None)
    wanting = module.parameter_keys - module.frozen_keys if module is not None else frozenset[int]()
    parts = covering(module, wanting) if module is not None and wanting else ()
    if module is None or not 0 < len(parts) <= _NAMED or len({call.module for call in calls}) > 1:
        return None
    return module.path, parts, len(module.frozen_keys)


def _of_unused(run: Run, root: str, unused: tuple[str, tuple[str, ...], int], place: Place | None) -> Finding:
    """Of a new layer that was given a name which `forward` does not use, or uses without a gradient."""
    name, parts, count = unused
    names = " and ".join(f"`{part}`" for part in parts)
    return Finding(
        message=(
            f"there is nothing to train behind `{root}`: of `{name}`, only {names} want{'s'[: len(parts) == 1]} a "
            f"gradient, and no gradient reaches {names}."
        ),
        subject=name,
        fix=(
            f"# forward() of {name} has to use {' and '.join(parts)}; or give the new layer the name that it uses"
            if _leaves_out(run, name, parts)
            else f"# {root} has to be computed from {' and '.join(parts)}, with gradients switched on"
        ),
        line=place.line if place is not None else None,
        cell=place.cell if place is not None else None,
        evidence=(
            Evidence("parameters that want no gradient", count, "count"),
            Evidence("parts that do", ", ".join(parts)),
        ),
    )


def _leaves_out(run: Run, name: str, parts: tuple[str, ...]) -> bool:
    """True if the text of the model's class is at hand, and names none of the parts outside of `__init__`."""
    kind = next((one.kind for one in run.after.modules if one.path == name), "")
    trees = [syntax.parse(past.cell.source) for past in (*run.earlier, run)]
    nodes = [node for tree in trees if tree is not None for node in syntax.walk(tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef) and node.name == kind]
    methods = [one for each in classes for one in each.body if isinstance(one, ast.FunctionDef)]
    read = [node for one in methods if one.name != "__init__" for node in syntax.walk(one)]
    used = {one.attr for one in read if isinstance(one, ast.Attribute)}
    own = {part.removeprefix(f"{name}.").partition(".")[0].partition("[")[0] for part in parts}
    by_name = (
        any(isinstance(one, ast.Name) and one.id in ("getattr", "vars", "super") for one in read) or used & _BY_NAME
    )
    return "forward" in {one.name for one in methods} and not own & used and not by_name


def _thawed(run: Run, name: str, keys: frozenset[int]) -> str:
    """What makes the frozen part of a module learn that optimizers hold; the whole where that is not known."""
    if not name:
        return "# requires_grad_(True) on what is to learn"
    held = [(one.path, one.parameter_keys) for one in run.after.optimizers if one.parameter_keys < keys]
    wanted = frozenset[int]().union(*(own for _, own in held))
    found = next((paths for one in run.after.modules if (paths := covering(one, wanted))), ()) if wanted < keys else ()
    if not held or not found or len(found) > _NAMED:
        return f"{name}.requires_grad_(True)  # or of the part that is to learn"
    holders = " and ".join(path for path, _ in held if path) or "the optimizer"
    return "\n".join(f"{path}.requires_grad_(True)  # {holders} holds it" for path in found)


def _of_tensors(root: str, held: tuple[str, ...], place: Place | None) -> Finding:
    """Of tensors that are optimised themselves, as an image is through a network that stays as it is."""
    names, one = " and ".join(f"`{name}`" for name in held), len(held) == 1
    return Finding(
        message=(
            f"there is nothing to train behind `{root}`: the optimizer holds {names}, "
            f"{'a tensor that has' if one else 'tensors that have'} `requires_grad=False`."
        ),
        subject=held[0],
        fix="\n".join(f"{name}.requires_grad_(True)  # before the optimizer is made" for name in held),
        line=place.line if place is not None else None,
        cell=place.cell if place is not None else None,
        evidence=(Evidence("tensors in the optimizer that want no gradient", len(held), "count"),),
    )


def _as_list(run: Run, error: ErrorFact) -> str:
    """The variable that the optimizer was given, made as a list; an example where the texts do not tell it."""
    tree = syntax.parse(error.statement)
    calls = [node for node in syntax.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    given = next((call.args[0] for call in calls if call.args and isinstance(call.args[0], ast.Name)), None)
    made = last_made(run, given.id) if given is not None else ""
    whole = f"{given.id} = list({made})" if given is not None and made and "\n" not in made else ""
    return whole if 0 < len(whole) <= _LONGEST else "params = list(model.parameters())"


def _without_gradients(count: int, name: str) -> str:
    return f"{all_of(count, 'parameter')} of `{name}` {'has' if count == 1 else 'have'} `requires_grad=False`"


def _empty(run: Run, error: ErrorFact) -> Finding:
    frozen = error.frozen
    name, count = frozen or ("", 0)
    why = (
        f"{_without_gradients(count, name)}, and only those with True were taken."
        if frozen
        else "the model has none, a filter has left none, or the iterator was used up before."
    )
    return Finding(
        message=f"the optimizer was given no parameter at all: {why}",
        subject=name or "optimizer",
        fix=(
            f"{name}.requires_grad_(True)  # or of the part that is to learn, before the optimizer is made"
            if frozen
            else f"{_as_list(run, error)}  # a list can be read more than once; and look at its length"
        ),
        line=error.place.line,
        cell=error.place.cell,
        evidence=(
            Evidence("parameters given", 0, "count"),
            *((Evidence("parameters that want no gradient", count, "count"),) if frozen else ()),
        ),
    )


def _frozen_optimizers(run: Run) -> Iterator[Finding]:
    for key, steps in run.steps_by_optimizer().items():
        if not steps[-1].idle:
            continue
        frozen = [step for step in steps if step.idle and 0 < step.parameter_count <= step.frozen_count]
        if len(frozen) >= _STEPS and len(frozen) == len(steps) and _trains(run) and not _has_others(run, steps[0]):
            yield _frozen(run, key, steps[0])


def _trains(run: Run) -> bool:
    """True if the cell is to train, and nothing in it does: a part may be frozen for a while."""
    return run.trace.count("backward") > 0 and all(step.idle for step in run.trace.steps)


def _has_others(run: Run, step: StepFact) -> bool:
    """True if the model whose parameters are frozen has others, which learn: `optimizer-of-another-model` says it."""
    models = (module.parameter_keys for module in run.after.modules if step.parameter_keys <= module.parameter_keys)
    return step.unreached and any(step.leaf_keys & keys for keys in models)


def _switched_on(run: Run, key: int) -> str:
    """What makes the variables learn that are all that an optimizer holds."""
    fact = run.after.optimizer(key)
    held = fact.parameter_keys if fact is not None else frozenset()
    paths = [one.path for one in run.after.tensors if one.key in held and one.is_leaf and one.path.isidentifier()]
    names = paths if len(paths) == len(held) <= _NAMED else []
    return "\n".join(f"{name}.requires_grad_(True)  # before the optimizer is made" for name in names)


def _frozen(run: Run, key: int, step: StepFact) -> Finding:
    name = run.optimizer_path(key) or "optimizer"
    total = run.trace.count("step", step.place)
    return Finding(
        message=(f"{_without_gradients(step.parameter_count, name)}: {total} steps have changed nothing."),
        subject=name,
        fix=_switched_on(run, key) or "requires_grad_(True) on what is to learn",
        line=step.place.line,
        cell=step.place.cell,
        evidence=(
            Evidence("parameters in the optimizer", step.parameter_count, "count"),
            Evidence("of these frozen", step.frozen_count, "count"),
            Evidence("steps in this cell", total, "count"),
        ),
    )
