"""Evaluation that still records the graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ForwardFact, Place, Run, only_reads_outputs
from torch_inspector.facts.simple import statement_at
from torch_inspector.facts.spelled import with_article
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Below this the graph of one output is not worth more than a hint, whatever the user's own threshold says.
_LARGE_NBYTES = 1 << 20
# A result that is dropped at once frees its graph at once: one or two such calls are a look at a shape or a timing.
_MANY_CALLS = 3
_ALONE = re.compile(r"\s*(torch\.)?(no_grad|inference_mode)\(\)\s*(#.*)?$")
_HUGE_NBYTES = 10 << 20
_SHOWN = 3
# Held of the calls, over what they recorded: less may be the losses.
_MORE = 1.1


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds calls in eval mode whose result carries a graph that no backward call reached."""
    found: dict[Place, list[ForwardFact]] = {}
    for call in run.trace.forwards:
        if _graph_nbytes(call, run) < max(run.min_nbytes, 1):
            continue
        if _records_for_nothing(call, run) and not _is_for_later(call, run) and not _is_of_training(call, run):
            found.setdefault(call.place, []).append(call)
    # Of several models that one line calls, perhaps one on what the other gave, the one that records most.
    for place, calls in found.items():
        later = [one for one in run.trace.forwards if one.place == place and _goes_on(one, calls[0])]
        yield _finding(run, max((*calls, *later), key=lambda call: call.graph_nbytes))


def _records_for_nothing(call: ForwardFact, run: Run) -> bool:
    # Of a model without dropout and batch statistics nobody asks the mode: what is done with its outputs tells.
    predicts = not call.training or (not call.awake and call.trained and only_reads_outputs(run))
    if not predicts or not call.grad_enabled or not call.output_requires_grad or call.input_requires_grad:
        return False
    return _is_unused(call)


def _is_unused(call: ForwardFact) -> bool:
    return call.reached is False or (call.reached is None and not call.followed)


def _goes_on(call: ForwardFact, first: ForwardFact) -> bool:
    """True for a call on what an earlier one of the line may have given: its input requires grad."""
    predicts = call.training == first.training and call.grad_enabled and call.output_requires_grad
    return predicts and call.input_requires_grad and call.order > first.order and _is_unused(call)


def _is_for_later(call: ForwardFact, run: Run) -> bool:
    """True if the graph is kept and somebody prepared to look at gradients: hooks, `retain_grad()`."""
    prepared = call.hooked or any(c.name.endswith(".retain_grad") for c in run.trace.calls)
    return prepared and (bool(_kept(run)) or not run.after.complete)


def _is_of_training(call: ForwardFact, run: Run) -> bool:
    """True for a pass of a training step, `D(G(z).detach())`, while the model is trained in eval mode: one mistake."""
    if not any(f.module == call.module and not f.training and f.reached for f in run.trace.forwards):
        return False
    here = call.place.scope
    steps = {place.scope for place in run.trace.training_places()}
    return run.trace.feeds_training(call) or (bool(call.place.function) and here in steps)


def _graph_nbytes(call: ForwardFact, run: Run) -> int:
    """What a call has recorded; in train mode no call is asked, and what is kept of all of them tells."""
    if not call.training:
        return call.graph_nbytes
    return sum(graph.saved_nbytes for graph in run.after.graphs if graph.newest_nodes and not graph.spent)


def _kept(run: Run) -> list[str]:
    """Paths of what holds graphs of this cell, what was made first before what was made of it."""
    graphs = [graph for graph in run.after.graphs if graph.newest_nodes and not graph.spent]
    return [graph.path for graph in sorted(graphs, key=lambda graph: graph.key)]


def _held(call: ForwardFact, run: Run) -> str:
    """Who still holds it, and how much that is by now: what the calls were given may be in it."""
    graphs = [graph for graph in run.after.graphs if graph.newest_nodes and not graph.spent]
    if not graphs:
        return ""
    if len(graphs) > 1:
        return f"; {', '.join(f'`{one}`' for one in _kept(run)[:_SHOWN])} still hold it"
    (graph,) = graphs
    more = not call.training and graph.saved_nbytes > _MORE * call.count * call.graph_nbytes
    total = f"{'' if graph.complete else 'at least '}{size_text(graph.saved_nbytes)}"
    return f"; `{graph.path}` still holds it{f', {total} with inputs and later results' if more else ''}"


def _is_worth_a_warning(call: ForwardFact, run: Run) -> bool:
    lasting = bool(_kept(run)) or call.count >= _MANY_CALLS or call.graph_nbytes >= _HUGE_NBYTES
    return lasting and not call.training and call.graph_nbytes >= _LARGE_NBYTES


def _under_no_grad(call: ForwardFact, run: Run) -> str:
    """The block, with the user's own statement in it where that can be had; else with what it does."""
    place = _place_of_evaluation(call, run)
    statement = statement_at(run.source_of(place.cell), place) if place is not None else None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield) and statement.value.value is not None:
        # The block would go on while others read what is given out.
        return f"with torch.no_grad():\n    made = {ast.unparse(statement.value.value)}\nyield made"
    if statement is not None:
        return f"with torch.no_grad():\n    {ast.unparse(statement)}"
    kept = _kept(run)[:1]
    named = f"{kept[0]} = ...  # the pass in eval mode" if kept and kept[0].isidentifier() else "..."
    return f"with torch.no_grad():\n    {f'output = {call.name}(...)' if call.name else named}"


def _place_of_evaluation(call: ForwardFact, run: Run) -> Place | None:
    """The innermost line that led to the call and is not in a function that training goes through as well."""
    trained = [one for past in (run, *run.earlier) for one in past.trace.forwards if one.training or one.reached]
    shared = {at.scope for one in trained for at in one.way if at.function}
    return next((at for at in call.way if at.scope not in shared), None)


def _alone(run: Run, call: ForwardFact) -> str:
    """A word on `torch.no_grad()` as a statement of its own, without `with`."""
    lines = run.source_of(call.place.cell).splitlines()
    found = next((number for number, line in enumerate(lines, 1) if _ALONE.match(line)), None)
    return f" Line {found} does nothing: `torch.no_grad()` needs `with`." if found is not None else ""


def _described(run: Run, call: ForwardFact, name: str) -> str:
    """The module as it can be typed, or by its class and whose part it is."""
    owner = run.owner_path(call.parameter_keys) if name == call.kind else ""
    return f"{with_article(name)} of `{owner}`" if owner else f"`{name}`"


def _finding(run: Run, call: ForwardFact) -> Finding:
    name = run.path_of(call)
    kept = _kept(run)
    size = size_text(_graph_nbytes(call, run))
    mode = "" if call.training else " per call in eval mode"
    return Finding(
        message=f"{_described(run, call, name)} recorded a graph of {size}{mode}, "
        f"and no backward call used it{_held(call, run)}.{_alone(run, call)}",
        subject=kept[0] if kept else name,
        held=kept[0] if kept else "",
        fix=_under_no_grad(call, run),
        line=call.place.line,
        cell=call.place.cell,
        severity="" if _is_worth_a_warning(call, run) else "hint",
        evidence=(
            Evidence("module", f"{name} ({call.kind})"),
            Evidence(f"kept for backward{' per call' if not call.training else ''}", _graph_nbytes(call, run), "bytes"),
            Evidence("calls from this line", call.count, "count"),
            *(Evidence("held by", path) for path in kept[:_SHOWN]),
        ),
    )
