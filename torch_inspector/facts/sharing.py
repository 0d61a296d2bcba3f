"""Which backward call freed a graph that two losses, or two turns of a loop, have in common."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.facts.on_one_line import made_in_turn
from torch_inspector.facts.rivals import judged

if TYPE_CHECKING:
    from torch_inspector.facts.errors import ErrorFact, RefusalFact
    from torch_inspector.facts.graphs import BackwardFact
    from torch_inspector.facts.optimizers import StepFact
    from torch_inspector.facts.run import Run


def turn_before(run: Run, error: ErrorFact, refusal: RefusalFact) -> BackwardFact | None:
    """The call of the failing line in an earlier turn of its loop, which went through what is made outside of it.

    Another line may have called `backward()` since: not on that graph, or it would have failed itself.
    """
    old = refusal.olds[0] if refusal.olds else None
    if old is None or refusal.is_old or refusal.carried or not refusal.in_loop or old.made_at is None:
        return None
    here, latest = error.place.scope, run.backward_before()
    if old.made_at.scope != here or made_in_turn(run, old.made_at, error.place):
        return None
    # A call above the line may be one of this turn, and then it is that which freed the graph.
    if latest is None or latest.place.scope != here:
        return None
    if (latest.place.line or 0) < (error.place.line or 0):
        return None
    calls = [call for call in run.trace.backwards if call.place == error.place and call.number != refusal.number]
    return calls[-1] if calls else None


def trains_others(run: Run, call: BackwardFact) -> bool:
    """True if a backward call also reaches what another optimizer holds than those that step before the next call."""
    steps = _steps_of(run, call)
    reached = call.leaf_keys
    trained = frozenset[int]().union(*(one.parameter_keys for one in steps))
    stepped = {one.optimizer for one in steps}
    others = [one.parameter_keys for one in run.after.optimizers if steps and one.key not in stepped]
    return bool(reached & trained) and any(reached & keys - trained for keys in others)


def _steps_of(run: Run, call: BackwardFact) -> list[StepFact]:
    """The steps between a backward call and the next."""
    later = [one.order for one in run.trace.backwards if one.order > call.order]
    steps = (one for one in run.trace.steps if one.order > call.order)
    return [one for one in steps if not later or one.order < min(later)]


class Shared(NamedTuple):
    """The loss that was differentiated first, and the step that followed."""

    call: BackwardFact
    step: StepFact

    def mended(self, run: Run, root: str, step: str) -> str:
        """What each of the losses is computed from; `root` is the later one, `step` the call of the step."""
        other = self.call.root
        found = _judged(run)
        if found is None:
            return f"{root} = ...  # computed anew, after {step}: the step changes weights that it was computed with"
        judge, given = found
        return f"# {other} from {judge}({given}.detach()), and {root} from {judge}({given}) anew, after {step}"


def before_step(run: Run, error: ErrorFact, refusal: RefusalFact, before: BackwardFact | None) -> Shared | None:
    """Another loss of this turn, differentiated and stepped for since this one was made; None if that is not so."""
    made, place = refusal.made_at, error.place
    if before is None or made is None or not refusal.is_old or not refusal.named or before.root in ("", refusal.root):
        return None
    same = made.scope == place.scope == before.place.scope
    between = (made.line or 0) < (before.place.line or 0) < (place.line or 0)
    step = next((one for one in run.trace.steps if one.order > before.order), None)
    if not same or not between or step is None or not made_in_turn(run, made, place):
        return None
    return Shared(before, step)


def _judged(run: Run) -> tuple[str, str] | None:
    """The model that judges what another one makes, and what it is given, as the only text that has both says."""
    found = set[tuple[str, str]]()
    for past in (run, *run.earlier):
        tree = syntax.parse(past.cell.source)
        for node in syntax.walk(tree) if tree is not None else ():
            names = (
                [one.id for one in syntax.walk(node.targets[0]) if isinstance(one, ast.Name)]
                if isinstance(node, ast.Assign)
                else []
            )
            for name in names:
                one = judged(run, past.cell.source, name)
                if one is not None:
                    found.add((one.judge, one.before.partition(" = ")[2] or one.given))
    return found.pop() if len(found) == 1 else None
