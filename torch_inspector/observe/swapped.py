"""Second names for weights that are no mistake: the model has other weights meanwhile, or they are the last turn's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import syntax
from torch_inspector.observe.source import dotted

# Calls that give parameters other memory.
_REBINDS = frozenset(["set_", "swap_tensors", "vector_to_parameters"])


def is_swapped(scope: ast.AST, kept: ast.expr, statement: ast.stmt) -> bool:
    """True if a loop around gives a model other memory, as `p.data = average` does, and not only what was kept."""
    loops = [one for one in syntax.walk(scope) if isinstance(one, (ast.For, ast.While)) and _holds(one, statement)]
    return any(_rebinds(one, loop, kept) for loop in loops for one in syntax.walk(loop))


def _rebinds(node: ast.AST, loop: ast.AST, kept: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
        return called in _REBINDS or any(one.arg == "assign" for one in node.keywords)
    if not isinstance(node, ast.Assign):
        return False
    into = any(isinstance(one, ast.Attribute) and one.attr == "data" for one in node.targets)
    return into and dotted(node.value) not in _names_of(kept, loop) and ast.unparse(node.value) != ast.unparse(kept)


def _names_of(kept: ast.expr, loop: ast.AST) -> set[str]:
    """The name of what was kept, and those that a loop over it gives its parts."""
    inner = (one for one in syntax.walk(loop) if isinstance(one, ast.For) and _mentions(one.iter, kept))
    parts = {dotted(name) for one in inner for name in syntax.walk(one.target)}
    return (parts | {dotted(kept)}) - {""}


def _mentions(node: ast.AST, kept: ast.expr) -> bool:
    return any(type(one) is type(kept) and ast.unparse(one) == ast.unparse(kept) for one in syntax.walk(node))


def after_new_values(scope: ast.AST, kept: ast.expr, statement: ast.stmt) -> list[ast.AST]:
    """What follows, in one suite, an assignment other than the statement that gives the same name something else."""
    found: list[ast.AST] = []
    for block in _blocks(scope):
        new = next((n for n, one in enumerate(block) if one is not statement and _gives(one, kept)), len(block))
        found += [part for one in block[new + 1 :] for part in syntax.walk(one)]
    return found


def _gives(statement: ast.stmt, kept: ast.expr) -> bool:
    return isinstance(statement, ast.Assign) and any(ast.unparse(one) == ast.unparse(kept) for one in statement.targets)


def _blocks(scope: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in syntax.walk(scope):
        blocks = (getattr(node, field, None) for field in ("body", "orelse", "finalbody"))
        yield from (one for one in blocks if type(one) is list)


def is_last_turn(scope: ast.AST, statement: ast.stmt) -> bool:
    """True under `if epoch == epochs - 1` in `for epoch in range(epochs)`: nothing is trained after it."""
    nodes = [one for one in syntax.walk(scope) if isinstance(one, (ast.For, ast.While)) and _holds(one, statement)]
    tests = [one.test for one in syntax.walk(scope) if isinstance(one, ast.If) and _holds(one, statement)]
    compared = [one for test in tests for one in _all_of(test) if isinstance(one, ast.Compare)]
    return len(nodes) == 1 and isinstance(nodes[0], ast.For) and any(_asks_for_last(one, nodes[0]) for one in compared)


def _all_of(test: ast.expr) -> list[ast.expr]:
    both = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
    return test.values if both else [test]  # type: ignore[attr-defined]


def _asks_for_last(test: ast.Compare, loop: ast.For) -> bool:
    """True for `i == n - 1`, `i + 1 == n`, `i == len(batches) - 1` and `i == 4` in a loop over `range(5)`."""
    count, first = _turns_of(loop)
    if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.GtE)) or not count:
        return False
    counter = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
    sides = [ast.unparse(one) for one in (test.left, test.comparators[0])]
    last = f"{count} - 1" if first == 0 else count
    number = str(int(count) - 1 + first) if count.isdecimal() else last
    name = ast.unparse(counter)
    wanted = [{name, last}, {name, number}, *([{f"{name} + 1", count}] if first == 0 else [])]
    return set(sides) in wanted


def _turns_of(loop: ast.For) -> tuple[str, int]:
    """How many turns a loop has, as text, and what its counter begins with; nothing if it says neither."""
    call = loop.iter
    called = dotted(call.func) if isinstance(call, ast.Call) else ""
    if called in ("range", "trange") and len(call.args) == 1:  # type: ignore[attr-defined]
        return ast.unparse(call.args[0]), 0  # type: ignore[attr-defined]
    if called == "enumerate" and len(call.args) == 1 and not call.keywords:  # type: ignore[attr-defined]
        return f"len({ast.unparse(call.args[0])})", 0  # type: ignore[attr-defined]
    return "", 0


def _holds(node: ast.AST, statement: ast.stmt) -> bool:
    return any(one is statement for one in syntax.walk(node))
