"""Gradients and optimizer state are kept although only inference follows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, ModuleFact, OptimizerFact, Place, Run, syntax
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

_Function = tuple[int | None, str]
_SLUG = "training-state-left"
# Every notebook that ends with an evaluation keeps some: so many times the smallest amount that is worth a line.
_TIMES = 64
# Outputs made under it can never be trained on. Without it, a second cell of inference must follow.
_INFERENCE_MODE = re.compile(r"\binference_mode\b")
_INFERENCE_CELLS = 2
# Functions that measure between two parts of training; those that use what was learned have other names.
_MEASURES = re.compile(r"eval|valid|test|score|acc|metric|measure|check|loss", re.IGNORECASE)


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds optimizers with much state in a cell that only predicts, if no training has come after such a cell."""
    if run.error is not None or not _only_predicts(run):
        return
    trainers = _trainers(run)
    since = _since_training(run, trainers)
    if since is None or _comes_back(run, trainers) or not _has_moved_on(run, since, trainers):
        return
    keys = frozenset[int]().union(*(call.parameter_keys for call in run.trace.forwards if call.trained))
    for optimizer in run.after.optimizers:
        nbytes = optimizer.state_nbytes + optimizer.gradient_nbytes
        if optimizer.path and optimizer.parameter_keys & keys and _is_news(run, since, optimizer.path, nbytes):
            yield _finding(run, optimizer, nbytes)
    for module in _left_alone(run) if run.after.complete else ():
        if _is_news(run, since, module.path, module.gradient_nbytes):
            yield _of_gradients(run, module)


def _is_news(run: Run, since: list[Run], path: str, nbytes: int) -> bool:
    told = any(f.slug == _SLUG and f.subject == path for past in since for f in past.findings)
    return nbytes >= max(_TIMES * run.min_nbytes, 1) and not told


def _left_alone(run: Run) -> list[ModuleFact]:
    """Modules that the cell called, and that have gradients although no optimizer is at hand that would use them."""
    called = {call.module for call in run.trace.forwards if call.trained}
    held = frozenset[int]().union(*(one.parameter_keys for one in run.after.optimizers))
    found = (one for one in run.after.modules if one.key in called and one.path and not one.parameter_keys & held)
    return list({one.key: one for one in found}.values())


def _trains(run: Run) -> bool:
    return bool(run.trace.steps or run.trace.backwards or run.trace.count("step") or run.trace.count("backward"))


def _only_predicts(run: Run) -> bool:
    """True for a cell that calls trained models in eval mode without a graph, and does nothing that makes one."""
    calls = run.trace.forwards
    return bool(calls) and not run.trace.graph_nodes_made and not _trains(run) and all(map(_predicts, calls))


def _infers(run: Run, trainers: frozenset[_Function]) -> bool:
    """True for such a cell, if no function in it has trained: that may well do so again."""
    return _only_predicts(run) and all(
        trainers.isdisjoint(place.scope for place in call.way) for call in run.trace.forwards
    )


def _trainers(run: Run) -> frozenset[_Function]:
    """Functions that have made steps or called `backward`, and those that have led to them."""
    runs = (*run.earlier, run)
    steps = [one.place for past in runs for one in past.trace.steps]
    steps += [one.place for past in runs for one in past.trace.backwards]
    found = {place.scope for place in steps if place.function}
    for call in (one for past in runs for one in past.trace.forwards if one.grad_enabled):
        way = [place.scope for place in call.way if place.function]
        first = next((index for index, one in enumerate(way) if one in found), len(way))
        found.update(way[first:])
    return frozenset(found)


def _predicts(call: ForwardFact) -> bool:
    return not call.training and not call.grad_enabled and (call.trained or not call.parameter_keys)


def _since_training(run: Run, trainers: frozenset[_Function]) -> list[Run] | None:
    """Runs after the latest one that trained; None if none did or this run is not about inference."""
    if not _infers(run, trainers):
        return None
    places = [place for place, past in enumerate(run.earlier) if _trains(past)]
    return list(run.earlier[places[-1] + 1 :]) if places else None


def _comes_back(run: Run, trainers: frozenset[_Function]) -> bool:
    """True if training has gone on after a cell of inference before."""
    inferred = False
    for past in run.earlier:
        if inferred and _trains(past):
            return True
        inferred = inferred or _infers(past, trainers)
    return False


def _has_moved_on(run: Run, since: list[Run], trainers: frozenset[_Function]) -> bool:
    cells = [*(past for past in since if _infers(past, trainers)), run]
    if len(cells) >= _INFERENCE_CELLS or _INFERENCE_MODE.search(run.cell.code) is not None:
        return True
    return all(_is_under_inference_mode(run, call) for call in run.trace.forwards)


def _is_under_inference_mode(run: Run, call: ForwardFact) -> bool:
    """True for a call in a function that sets the mode, or is called by such a one, and none that measures."""
    places = [call.place, *(caller.place for caller in call.callers)]
    if any(_MEASURES.search(one.function) for one in places):
        return False
    return any(_INFERENCE_MODE.search(_function_at(run, one)) for one in places if one.function)


def _function_at(run: Run, place: Place) -> str:
    """The text of the function around a line, with its decorators; empty if it is not known."""
    tree = syntax.parse(run.source_of(place.cell))
    scope = syntax.scope_at(tree, place.line) if tree is not None and place.line is not None else None
    return ast.unparse(scope) if isinstance(scope, ast.FunctionDef) else ""


def _finding(run: Run, optimizer: OptimizerFact, nbytes: int) -> Finding:
    call = next(call for call in run.trace.forwards if call.parameter_keys & optimizer.parameter_keys)
    model = run.path_of(call)
    return Finding(
        message=(
            f"`{model}` only predicts here, and {size_text(nbytes)} are kept for training it: {_parts(optimizer)}."
        ),
        subject=optimizer.path,
        held=optimizer.path,
        fix=f"{optimizer.path}.zero_grad(); del {optimizer.path}  # if training is over",
        line=call.place.line,
        cell=call.place.cell,
        evidence=(
            Evidence("optimizer state", optimizer.state_nbytes, "bytes"),
            Evidence("gradients", optimizer.gradient_nbytes, "bytes"),
            Evidence("optimizer", optimizer.kind),
        ),
    )


def _of_gradients(run: Run, module: ModuleFact) -> Finding:
    call = next(call for call in run.trace.forwards if call.module == module.key)
    return Finding(
        message=(
            f"`{module.path}` only predicts here, and {size_text(module.gradient_nbytes)} of gradients are kept from "
            "training it, which no optimizer at hand would use."
        ),
        subject=module.path,
        held=module.path,
        fix=f"{module.path}.zero_grad()  # if training is over",
        line=call.place.line,
        cell=call.place.cell,
        evidence=(Evidence("gradients", module.gradient_nbytes, "bytes"), Evidence("class", module.kind)),
    )


def _parts(optimizer: OptimizerFact) -> str:
    parts = (("gradients", optimizer.gradient_nbytes), ("state", optimizer.state_nbytes))
    kept = " and ".join(f"{size_text(nbytes)} of {name}" for name, nbytes in parts if nbytes)
    return f"{kept} of the optimizer `{optimizer.path}`"
