"""Tensors with history collected in a list, or added up with their history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch_inspector.facts import GraphFact, Run
from torch_inspector.facts.detaching import EACH_STEP, carried_states, correction, detached
from torch_inspector.facts.left_by_forward import Left, left_by_forward
from torch_inspector.facts.penalties import is_penalty
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Fewer can be the parts of one step (losses of several heads).
_COLLECTED = 3
# What makes several losses may have called `backward()` on each of them: on two for a GAN, on four for four heads.
_HEADS = 4
# Fewer may be the losses of a few networks in one step, each with its own backward call.
_EPOCH = 10
# Below this, activations are not worth more than a hint, whatever the user's own threshold says.
_LARGE_NBYTES = 1 << 20
# Truncated backpropagation that reaches over some windows keeps their graphs on purpose, seldom of more than a few.
_WINDOWS = 16
# Places in the elements of a collection that are named.
_PARTS = 3
# Lines that make a collection of what is made in a loop; a container that is made anew as a whole is none.
_COLLECTS = ("append", "hook", "item", "sum", "comprehension")


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds collections and running totals that keep the graphs of many steps after the cell."""
    yield from _each_cause_once(list(_found(run)))


def _each_cause_once(findings: list[Finding]) -> list[Finding]:
    """The same without those that another one's correction settles: states that are detached together."""
    told: dict[str, list[Finding]] = {}
    for one in sorted(findings, key=lambda one: one.severity == "hint"):
        told.setdefault(one.fix if EACH_STEP in one.fix else f"{one.subject} {one.fix}", []).append(one)
    return [_with_names(ones) for ones in told.values()]


def _with_names(findings: list[Finding]) -> Finding:
    first = findings[0]
    others = [f"`{one.subject}`" for one in findings[1:] if one.subject != first.subject]
    return replace(first, message=f"{first.message} So {_does(others)} {', '.join(others)}.") if others else first


def _does(names: list[str]) -> str:
    return "does" if len(names) == 1 else "do"


def _found(run: Run) -> Iterator[Finding]:
    before = {graph.path: graph for graph in run.before.graphs}
    for graph in run.after.graphs:
        old = before.get(graph.path)
        new = graph.newest_nodes and (old is None or old.key != graph.key)
        if new and not _follows_from_another(graph) and not is_penalty(run, graph):
            found = (_with_state(run, graph, one) for one in _judge(run, _with_steps(run, graph)))
            yield from (_with_retained(run, graph, one) for one in found)
        if graph.spent and not _follows_from_another(graph) and not _over_steps(_with_steps(run, graph)):
            yield from _judge_left(run, graph)


def _with_state(run: Run, graph: GraphFact, finding: Finding) -> Finding:
    """The same, for outputs that each step makes anew, with the state that carries the history to the next step."""
    if not (graph.container and graph.grown_by == "assigned" and graph.differentiated):
        return finding
    states = [one for one in run.after.graphs if one.grown_by == "carried" and one.differentiated and not one.spent]
    carried = [one for one in states if one.step_count >= graph.step_count and one.detached]
    return replace(finding, fix=f"{detached(run, carried)}  # {EACH_STEP}") if len(carried) == 1 else finding


def _with_retained(run: Run, graph: GraphFact, finding: Finding) -> Finding:
    """The same for all states at once, where each step has one backward call, with `retain_graph=True` for them only.

    Each of them leads to the same history: with one of them left, the call fails without `retain_graph`.
    """
    places = {backward.place for backward in run.trace.backwards}
    each = len(places) == 1 and run.trace.count("backward") <= graph.step_count + 1
    if graph.container or not each or not all(backward.retain_graph for backward in run.trace.backwards):
        return finding
    if not finding.fix.endswith(EACH_STEP):
        return finding
    states = carried_states(run)
    together = states if graph in states else [graph]
    when = "then" if _is_all(run, together) else "when all are detached,"
    return replace(
        finding, fix=f"{detached(run, together)}  # {EACH_STEP}; {when} backward() needs no retain_graph=True"
    )


def _is_all(run: Run, states: list[GraphFact]) -> bool:
    """True if nothing else is left that reaches back over steps, but for what is made of these states."""
    paths = {state.path for state in states}
    kept = (one for one in run.after.graphs if one.differentiated and not (one.container or one.spent))
    return all(one.path in paths or one.derived_from in paths for one in kept)


def _with_steps(run: Run, graph: GraphFact) -> GraphFact:
    """The same, known to reach over steps where each forward pass of the cell had a backward call of its own.

    Of many calls only some are marked in between; a list that each epoch makes anew may lie between two marks.
    """
    if graph.differentiated or not graph.spent or graph.grown_by not in ("append", "item"):
        return graph
    called = (one for one in run.trace.counts if one.kind == "forward" and not one.name.endswith("Loss"))
    passes = sum(one.count for one in called)
    steps = graph.pass_count * run.trace.count("backward") // passes if passes else 0
    steps = min(steps, graph.pass_count)
    return graph._replace(differentiated=True, step_count=steps) if graph.container and steps >= _EPOCH else graph


def _follows_from_another(graph: GraphFact) -> bool:
    """True for the mean of a list or total that is reported itself."""
    return bool(graph.derived_from) and graph.grown_by not in ("sum", "carried")


def _judge(run: Run, graph: GraphFact) -> Iterator[Finding]:
    large = graph.saved_nbytes >= _LARGE_NBYTES
    if graph.spent:
        if _over_steps(graph):
            said = _nodes_only(graph, calls=run.trace.count("backward"))
            yield _finding(run, graph, said + _also(run, graph), hint=True)
    elif graph.saved_nbytes < max(run.min_nbytes, 1) or _is_differentiated(run, graph):
        return
    elif _over_steps(graph):
        yield _finding(
            run,
            graph,
            _activations(graph, calls=run.trace.count("backward")) + _also(run, graph),
            hint=not large or not _is_plain_leak(run, graph),
        )
    elif _over_passes(graph) and not _is_kept_for_more(run, graph):
        yield _finding(
            run,
            graph,
            _activations(graph, calls=run.trace.count("backward")) + _also(run, graph),
            hint=not large or not _is_evaluation(run, graph),
        )


def _judge_left(run: Run, graph: GraphFact) -> Iterator[Finding]:
    if graph.nbytes >= max(run.min_nbytes, 1) and _is_there_again(run, graph):
        left = left_by_forward(run, graph.path)
        yield from () if left is None else (_left(graph, left),)


def _is_there_again(run: Run, graph: GraphFact) -> bool:
    """True at the second cell that ends with it: the next one may have read what a pass has left."""
    before = run.earlier[-1].before.graphs if run.earlier else ()
    return any(_is_same(graph, one) for one in run.before.graphs) and not any(_is_same(graph, one) for one in before)


def _is_same(graph: GraphFact, old: GraphFact) -> bool:
    return old.path == graph.path and old.spent


def _over_steps(graph: GraphFact) -> bool:
    """True if what is kept was made in several training steps, so that no backward call can need it all."""
    if not graph.differentiated or graph.grown_by in ("named", "display"):
        return False
    may_be_heads = graph.grown_by in (("assigned", "item") if graph.container else ("assigned",))
    return not may_be_heads or graph.step_count > _HEADS


def _over_passes(graph: GraphFact) -> bool:
    """True if what is kept comes from several forward passes, collected by a line of code."""
    if graph.pass_count < _COLLECTED:
        return False
    if graph.container:
        return graph.grown_by in _COLLECTS and not graph.feeds_loss
    return graph.grown_by == "joined" or (graph.grown_by == "sum" and graph.scalar and graph.sum_length >= _COLLECTED)


def _is_plain_leak(run: Run, graph: GraphFact) -> bool:
    """True if these activations wait although later steps have gone backward without them."""
    if graph.container or graph.grown_by == "sum":
        return True
    return graph.step_count >= _WINDOWS and any(backward.retain_graph for backward in run.trace.backwards)


def _is_evaluation(run: Run, graph: GraphFact) -> bool:
    """True if nobody is going to differentiate it: the model was in eval mode, or a hook or list records numbers.

    Outputs of a model in train mode, and totals, may be differentiated in the next cell.
    """
    in_eval = any(
        not call.training and call.output_requires_grad and not call.input_requires_grad and call.reached is not True
        for call in run.trace.forwards
    )
    return in_eval or graph.grown_by == "hook" or (graph.container and graph.scalar)


def _is_differentiated(run: Run, graph: GraphFact) -> bool:
    """True if backward was called on the variable itself: a total loss, kept with `retain_graph`."""
    return any(backward.root == graph.path for backward in run.trace.backwards)


def _is_kept_for_more(run: Run, graph: GraphFact) -> bool:
    """True for a part of a loss whose backward call was to keep the graph: two losses of one model."""
    return graph.feeds_loss and any(backward.retain_graph for backward in run.trace.backwards)


def _what(graph: GraphFact, *, calls: int) -> str:
    # What no backward call has come after may be the parts of a loss yet: log-probabilities of an episode.
    things = ("losses" if graph.differentiated and not graph.feeds_loss else "numbers") if graph.scalar else "tensors"
    if graph.container and graph.tensor_count >= _COLLECTED:
        at_least = "" if graph.complete else "at least "
        return f"{at_least}{graph.tensor_count} {things} with their history{_parts(graph)}"
    if graph.sum_length >= _COLLECTED and not (graph.grown_by == "carried" and graph.differentiated):
        return f"the history of {'' if graph.complete else 'at least '}{graph.sum_length} additions"
    if graph.differentiated:
        at_least = "at least " if calls > graph.step_count else ""  # between calls only counted is one stretch
        return f"a history that reaches over {at_least}{graph.step_count - 1} backward calls"
    return f"the history of {graph.pass_count} forward passes"


def _parts(graph: GraphFact) -> str:
    """Where they are in each element, if they are in a few places."""
    named = [f"`{one}`" for one in graph.parts if one]
    few = 1 < len(named) <= _PARTS and not any("[*]" in one for one in named)
    return f" ({', '.join(named[:-1])} and {named[-1]} of its elements)" if few else ""


def _activations(graph: GraphFact, *, calls: int) -> str:
    at_least = "" if graph.complete else "at least "
    size = size_text(graph.saved_nbytes)
    # Backward calls with `retain_graph` have come by, and left them there.
    passed_on = not graph.container or graph.grown_by == "carried"
    wait = "stay alive" if graph.differentiated and passed_on else "wait for a backward call"
    return f"`{graph.path}` keeps {_what(graph, calls=calls)}: {at_least}{size} of activations {wait}."


def _nodes_only(graph: GraphFact, *, calls: int) -> str:
    at_least = "" if graph.complete else "at least "
    themselves = "" if graph.scalar or not graph.nbytes else f", and the tensors themselves, {size_text(graph.nbytes)},"
    return (
        f"`{graph.path}` keeps {_what(graph, calls=calls)}: {at_least}{graph.node_count} graph nodes{themselves} stay "
        "alive (what the graph had saved is freed, backward has run)."
    )


def _also(run: Run, graph: GraphFact) -> str:
    """What hooks of the same model fill besides, if a hook fills this."""
    if graph.grown_by != "hook":
        return ""
    known = {one.path for one in run.after.graphs}
    models = {one.module for one in run.after.hooks if one.path == graph.path}
    others = [one for one in run.after.hooks if one.module in models and one.named and one.path not in known]
    told = [f"`{one.path}`, {size_text(one.nbytes)}" for one in others if one.new_count]
    return f" Hooks fill {' and '.join(told)}, too." if told else ""


def _left(graph: GraphFact, left: Left) -> Finding:
    owner = graph.path.rpartition(".")[0]
    return Finding(
        message=(
            f"`{graph.path}` keeps the latest result with its history, {size_text(graph.nbytes)} and "
            f"{graph.node_count} graph nodes, though backward has run; no cell so far reads it, and "
            f"copy.deepcopy({owner}) would fail."
        ),
        subject=graph.path,
        held=graph.path,
        fix=f"{left.target} = {left.value}.detach()",
        line=left.place.line,
        cell=left.place.cell,
        severity="hint",
        evidence=(
            Evidence("the tensor itself", graph.nbytes, "bytes"),
            Evidence("graph nodes", graph.node_count, "count"),
        ),
    )


def _finding(run: Run, graph: GraphFact, message: str, *, hint: bool) -> Finding:
    place = graph.grown_at
    return Finding(
        message=message,
        subject=graph.path,
        held=graph.path,
        fix=correction(run, graph),
        line=place.line if place else None,
        cell=place.cell if place else None,
        severity="hint" if hint else "",
        evidence=(
            Evidence("tensors with history", graph.tensor_count, "count"),
            Evidence("graph nodes", graph.node_count, "count"),
            Evidence("activations kept for backward", graph.saved_nbytes, "bytes"),
            Evidence("the tensors themselves", graph.nbytes, "bytes"),
        ),
    )
