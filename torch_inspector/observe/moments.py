"""Whether a model was trained on since its state was taken: by an optimizer, or by steps written by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe import layers
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.sampled import Values, some_values
from torch_inspector.observe.versions import version_of

# Parameters of a module whose versions stand for all, and those of which some values are read.
_PROBES, _READ = 8, 2
_WRITES = frozenset(["sub_", "add_", "copy_", "addcdiv_", "addcmul_", "_foreach_add_", "_foreach_sub_"])


class Moment(NamedTuple):
    """What was so when a state was taken."""

    version: int
    """How often the first parameters were changed in place."""
    steps: int
    """Optimizer steps so far."""
    backwards: int
    values: tuple[Values, ...]


def moment_of(module: Any, steps: int, backwards: int) -> Moment:
    """How a module is now."""
    first = [one for _, one in islice(layers.walk_parameters(module), _PROBES)]
    return Moment(sum(map(version_of, first)), steps, backwards, tuple(map(some_values, first[:_READ])))


def moved_by_optimizer(before: Moment, now: Moment) -> bool:
    """True if optimizers made steps, and the parameters are not what they were."""
    return before.version < now.version and before.steps < now.steps


def moved_by_hand(before: Moment, now: Moment, files: list[CodeFile]) -> bool:
    """True if there were backward calls, the parameters are not what they were, and a text writes gradients into them.

    `p.data` has no version of its own: what is written there shows in the values alone.
    """
    changed = before.version < now.version or before.values != now.values
    return changed and before.backwards < now.backwards and any(map(_steps_by_hand, files))


def _steps_by_hand(file: CodeFile) -> bool:
    return file.tree is not None and "grad" in file.code and _has_steps(file.tree)


@lru_cache(maxsize=64)
def _has_steps(tree: ast.Module) -> bool:
    """True if a text has `p.data -= lr * p.grad`, or the same in a loop over parameters and gradients."""
    return any(_is_step(node) or _is_loop_of_steps(node) for node in syntax.walk(tree))


def _is_loop_of_steps(node: ast.AST) -> bool:
    if not isinstance(node, ast.For) or "grad" not in ast.unparse(node.iter):
        return False
    return any(next(_written(inner), None) is not None for inner in syntax.walk(node))


def _is_step(node: ast.AST) -> bool:
    return any("grad" in ast.unparse(value) for value in _written(node))


def _written(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement or a call writes into what it names, without giving that other memory."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Sub, ast.Add)):
        yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WRITES:
        yield from (*node.args, *(one.value for one in node.keywords))
