"""Training whose optimizer steps once per several backward calls, behind a test of a counter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from torch_inspector.facts import BackwardFact, CountFact, Place, StepFact, WindowFact, syntax
from torch_inspector.facts.hand_counters import hand_counter
from torch_inspector.observe.place import CodeFile

# Names of loops over the parts of one batch.
_MICRO = re.compile(r"accum|micro|grad_acc", re.IGNORECASE)
# Two windows are how the loop is built.
_WINDOWS = 2


def windows(
    steps: Sequence[StepFact],
    backwards: Sequence[BackwardFact],
    counts: Iterable[CountFact],
    files: Iterable[CodeFile],
) -> Iterator[WindowFact]:
    """Every optimizer whose steps come each after several backward calls of one line, by a modulo test or a loop."""
    if not any(step.backward_count > 1 for step in steps):
        return
    counts, files = tuple(counts), tuple(files)
    for key in dict.fromkeys(step.optimizer for step in steps):
        own = [step for step in steps if step.optimizer == key]
        places = {step.backward_at for step in own}
        at = own[0].backward_at
        if len(own) < _WINDOWS or len(places) != 1 or at is None or not all(map(_accumulates, own)):
            continue
        if any(one.place == at for one in backwards) and _is_guarded(files, own[0].place, at):
            yield _fact(own, at, counts)


def _accumulates(step: StepFact) -> bool:
    return step.backward_count > 0 and not step.has_closure and not step.kept_gradients


def _fact(steps: list[StepFact], at: Place, counts: tuple[CountFact, ...]) -> WindowFact:
    first = steps[0]
    made = [one for one in counts if one.kind == "step"]
    # The remainder may be dealt with by another line.
    alone = all(one.place == first.place for one in made) and all(step.place == first.place for step in steps)
    return WindowFact(
        optimizer=first.optimizer,
        place=first.place,
        backward_at=at,
        size=first.backward_count,
        sizes=tuple(step.backward_count for step in steps),
        call_count=sum(one.count for one in counts if one.kind == "backward" and one.place == at),
        step_count=sum(one.count for one in made) if alone else 0,
    )


def _is_guarded(files: tuple[CodeFile, ...], step: Place, backward: Place) -> bool:
    """True if the step is under a test of a counter, or the backward call in a loop that says what it is for."""
    file = next((file for file in files if file.cell == backward.cell and file.tree is not None), None)
    if step.line is None or backward.line is None or file is None or file.tree is None:
        return False
    there, here = backward.line - file.offset, step.line - file.offset if step.cell == backward.cell else 0
    if any(syntax.spans(loop, there) and not syntax.spans(loop, here) for loop in _micro_loops(file.tree)):
        return True
    if step.scope != backward.scope:
        return False
    tests = [node for node in syntax.walk(file.tree) if isinstance(node, ast.If) and syntax.spans(node, here)]
    tests = [test for test in tests if not syntax.spans(test, there)]
    scope = syntax.scope_at(file.tree, here)
    return any(_counts(test, scope) for test in tests)


def _counts(test: ast.If, scope: ast.AST) -> bool:
    """True for a test with a modulo, and for one of a counter that is counted up by hand and set back."""
    return any(isinstance(part, ast.Mod) for part in syntax.walk(test.test)) or hand_counter(test, scope) is not None


def _micro_loops(tree: ast.Module) -> list[ast.For]:
    """Loops such as `for micro_step in range(accumulation_steps):`."""
    loops = (node for node in syntax.walk(tree) if isinstance(node, ast.For))
    return [loop for loop in loops if _MICRO.search(f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}")]
