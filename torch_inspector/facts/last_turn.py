"""The test in front of a step as it should be, so that it holds in the last turn of its loop, too."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.lengths import has_length
from torch_inspector.facts.modulus import tests_of

if TYPE_CHECKING:
    from torch_inspector.facts.optimizers import WindowFact
    from torch_inspector.facts.run import Run

# What shows how far a loop is, and hands on what it is given.
_SHOWS = frozenset(["tqdm", "trange", "track", "progress_bar", "notebook_tqdm"])
_Sized = Callable[[ast.expr], bool]
_CUTS = frozenset(["split", "chunk", "unbind", "items", "tensor_split"])


def also_last(run: Run, window: WindowFact) -> str:
    """`if step % k == 0 or step == len(batches):`; empty where the texts do not tell what is counted, and how far."""
    tree, tests = syntax.parse(run.source_of(window.place.cell)), tests_of(run, window)
    counts = [(test, one.left) for test in tests for one in _remainders(test)]
    if tree is None or len(counts) != 1:
        return ""
    (test, count), line = counts[0], window.backward_at.line or 0
    loops = [one for one in syntax.walk(tree) if isinstance(one, ast.For) and syntax.spans(one, line)]
    loop = max(loops, key=lambda one: one.lineno, default=None)
    if loop is None or any(syntax.spans(one, window.place.line or 0) for one in test.orelse):
        return ""  # beside the step, the test is to fail in the last turn
    sized = partial(has_length, run, window.place.cell, line)
    ends = _ends(sized, loop, syntax.names_in(count))
    return f"if {_either(test.test, ends)}:" if ends else ""


def _remainders(test: ast.If) -> Iterator[ast.BinOp]:
    parts = (one for one in syntax.walk(test.test) if isinstance(one, ast.BinOp))
    return (one for one in parts if isinstance(one.op, ast.Mod))


def _either(test: ast.expr, ends: str) -> str:
    text = ast.unparse(test)
    both = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
    return f"({text}) or {ends}" if both or isinstance(test, ast.IfExp) else f"{text} or {ends}"


def _ends(sized: _Sized, loop: ast.For, names: set[str]) -> str:
    """What holds in the last turn of a loop that counts with one of some names."""
    target, turns = loop.target, _shown(loop.iter)
    call = turns if isinstance(turns, ast.Call) and isinstance(turns.func, ast.Name) and turns.args else None
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
    name = first.id if isinstance(first, ast.Name) and first.id in names else ""
    if not name or call is None or len(names) != 1:
        return ""
    if syntax.last_part(call.func) == "range" and first is target and len(call.args) <= len(("start", "stop")):
        return _equal(name, ast.unparse(call.args[-1]), 0)
    given = [one.value for one in call.keywords if one.arg == "start"] or call.args[1:]
    start = given[0].value if given and isinstance(given[0], ast.Constant) else 0 if not given else None
    length = _length(sized, _shown(call.args[0])) if syntax.last_part(call.func) == "enumerate" else ""
    return _equal(name, length, start) if length and type(start) is int and first is not target else ""


def _equal(name: str, length: str, start: int) -> str:
    """`i + 1 == n`, and `step == n` where the count begins with 1."""
    if not start and length.endswith(" + 1"):
        return f"{name} == {length.removesuffix(' + 1')}"
    return f"{name}{f' - {start - 1}' if start > 1 else ' + 1' if not start else ''} == {length}"


def _shown(node: ast.expr) -> ast.expr:
    shows = isinstance(node, ast.Call) and syntax.last_part(node.func) in _SHOWS and node.args
    return node.args[0] if shows and isinstance(node, ast.Call) else node


def _length(sized: _Sized, node: ast.expr) -> str:
    """`len(batches)`, of what is sure to have one; of `zip(xs, ys)` that of the shortest."""
    if isinstance(node, ast.Call) and syntax.last_part(node.func) == "zip" and node.args:
        lengths = [_length(sized, _shown(one)) for one in node.args]
        return f"min({', '.join(lengths)})" if all(lengths) and len(lengths) > 1 else ""
    if isinstance(node, ast.Call) and syntax.last_part(node.func) == "range" and len(node.args) == 1:
        return ast.unparse(node.args[0])
    cut = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CUTS
    plain = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))
    return f"len({ast.unparse(node)})" if cut or (plain and sized(node)) else ""
