"""Training whose optimizer steps once per several backward calls, behind a test of a counter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from torch_inspector.facts import BackwardFact, CountFact, Place, StepFact, WindowFact, syntax
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
    """True if the step is under a test with a modulo, or the backward call in a loop that says what it is for."""
    file = next((file for file in files if file.cell == backward.cell and file.tree is not None), None)
    if step.line is None or backward.line is None or file is None or file.tree is None:
        return False
    there, here = backward.line - file.offset, step.line - file.offset if step.cell == backward.cell else 0
    if any(_holds(loop, there) and not _holds(loop, here) for loop in _micro_loops(file.tree)):
        return True
    if (step.cell, step.function) != (backward.cell, backward.function):
        return False
    tests = [node for node in syntax.walk(file.tree) if isinstance(node, ast.If) and _holds(node, here)]
    tests = [test for test in tests if not _holds(test, there)]
    if any(isinstance(part, ast.Mod) for test in tests for part in syntax.walk(test.test)):
        return True
    return any(_counts_by_hand(test, file.tree) for test in tests)


def _counts_by_hand(test: ast.If, tree: ast.Module) -> bool:
    """True for `if n >= 4:`, where `n` is one more in each turn and the block sets it to 0 again."""
    compared = test.test if isinstance(test.test, ast.Compare) else None
    if compared is None or len(compared.ops) != 1 or not isinstance(compared.ops[0], (ast.Eq, ast.GtE, ast.Gt)):
        return False
    name = ast.unparse(compared.left)
    reset = any(_sets_to(one, name, 0) for one in syntax.walk(test))
    return reset and any(_adds_one(one, name) for one in syntax.walk(tree))


def _sets_to(node: ast.AST, name: str, number: int) -> bool:
    given = node.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) else None
    targets = node.targets if isinstance(node, ast.Assign) else []
    return given is not None and given.value == number and name in map(ast.unparse, targets)


def _adds_one(node: ast.AST, name: str) -> bool:
    more = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and ast.unparse(node.target) == name
    return more and isinstance(node.value, ast.Constant) and node.value.value == 1  # type: ignore[attr-defined]


def _micro_loops(tree: ast.Module) -> list[ast.For]:
    """Loops such as `for micro_step in range(accumulation_steps):`."""
    loops = (node for node in syntax.walk(tree) if isinstance(node, ast.For))
    return [loop for loop in loops if _MICRO.search(f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}")]


def _holds(node: ast.If | ast.For, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)
