"""Weights that a variable keeps without a copy, and that are compared with the weights after steps: with themselves.

Live values say that the variable shows the very memory of weights which were stepped. The text says where it was taken,
and that the cell compares it with what it was taken from, or writes it back there. Where the name says that the weights
are to stay as they were, and no line has read them yet, the steps alone are enough.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, takewhile
from time import thread_time
from typing import Any, NamedTuple

import torch
from torch import nn

from torch_inspector.facts import ExpressionFact, Place, StepFact, syntax
from torch_inspector.observe import as_torch, private
from torch_inspector.observe.history import module_tensors
from torch_inspector.observe.kinds import is_a, is_one_of
from torch_inspector.observe.layers import walk_parameters
from torch_inspector.observe.meant_alike import is_meant, is_trained_with
from torch_inspector.observe.namespace import hidden
from torch_inspector.observe.piled_weights import piled_weights
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.shapes import is_array
from torch_inspector.observe.stepped_between import Lines, Steps, stepped_between, steps_by_place
from torch_inspector.observe.taken import Taken, in_step, is_state, origin, taken_in

# Variables and tensors looked at, and cells whose steps are remembered.
_VARIABLES, _TENSORS, _CELLS = 2_000, 64, 64
# Processor time for the comparisons of one cell.
_TIME_S = 0.010
_dtype_of: Any = torch.Tensor.dtype.__get__  # type: ignore[attr-defined]
# What compares, and `copy_`, which writes one side into the other.
_COMPARES = frozenset(
    ["equal", "allclose", "isclose", "eq", "ne", "dist", "sub", "array_equal", "array_equiv", "copy_"]
)
# Names for what is read much later, to go back to it. What was there `before` may be looked at at once.
_STAYS = re.compile(
    r"(?:^|_)(?:init(?:ial)?|start|orig(?:inal)?|best|snap(?:shot)?|saved|backup|restore|rollback|rewind|untrained)(?:_|$)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_ON_PURPOSE = re.compile(
    r"data_ptr|shar(e|es|ed|ing)(?![a-z])|alias|storage|referenc|same memory|\bid\(|\bno(t a)? cop(y|ies)\b"
    r"|(?<![a-z])t(ied?|ying)(?![a-z])|same (tensor|object)|\bviews?\b(?!\()|#.*\b(live|without)\b",
    re.IGNORECASE,
)
_TO_SINGLE = re.compile(r"\.float\(\)|torch\.float(32)?\b")
_Side = tuple[ast.expr, ast.expr]


class _Pair(NamedTuple):
    """Both sides of a comparison."""

    node: ast.expr
    sides: _Side


class KeptWeights:
    """Finds such comparisons; remembers of the latest cells which parameters their lines have stepped."""

    def __init__(self) -> None:
        self._stepped: list[tuple[CodeFile, Steps]] = []
        self._told: set[tuple[int | None, int]] = set()

    def found(self, names: Mapping[str, Any], files: list[CodeFile], steps: list[StepFact]) -> Iterator[ExpressionFact]:
        """One fact for each variable that shows weights and is compared with them, or is to keep them as they were.

        Args:
            names: The user's variables.
            files: Code of the cell that is done, then of the others, latest first.
            steps: Steps of the optimizers in the cell.
        """
        if steps and files:
            self._stepped = [*self._stepped, (files[0], steps_by_place(steps))][-_CELLS:]
        if files and not is_known(files[0]):
            yield from piled_weights(names, files, steps)
        deadline = thread_time() + _TIME_S
        if not files or not self._stepped or is_known(files[0]):
            return
        yield from self._unread(names, files, deadline) if steps else ()
        tree = files[0].tree
        shown = _shown(names, files[0].code, deadline) if tree is not None else frozenset()
        for pair in takewhile(lambda _: thread_time() < deadline, _pairs(tree) if tree is not None and shown else ()):
            for kept, other in _kept(pair, tree, files, deadline):  # type: ignore[arg-type]
                new = kept.name in shown and not _is_followed(kept) and not self._has_told(kept)
                if new and self._is_itself(kept, other, pair.node, names, files):
                    shown -= {kept.name}
                    yield _fact(kept, pair.node)

    def _has_told(self, kept: Taken) -> bool:
        return (kept.file.cell, kept.node.lineno) in self._told

    def _unread(self, names: Mapping[str, Any], files: list[CodeFile], deadline: float) -> Iterator[ExpressionFact]:
        """One fact for each variable whose name says that weights stay in it, which no line has read since."""
        own = (
            name for name, value in islice(list(names.items()), _VARIABLES) if _STAYS.search(name) and _tensors(value)
        )
        for name in takewhile(lambda _: thread_time() < deadline, own):
            kept = taken_in(name, 1 << 30, files, deadline)
            if kept is None or _is_followed(kept) or self._has_told(kept) or _is_read(kept, files):
                continue
            if not _holds_parameters(names[name]) and self._is_itself(kept, None, None, names, files):
                self._told.add((kept.file.cell, kept.node.lineno))
                yield _fact(kept, None)

    def _is_itself(
        self, kept: Taken, other: Taken | None, pair: ast.expr | None, names: Mapping[str, Any], files: list[CodeFile]
    ) -> bool:
        """True if the variable shows weights that were stepped after it took them, and before they are compared."""
        between = frozenset[int]()
        for file, stepped in self._stepped:
            if (file.cell or 0) >= (kept.file.cell or 0):
                first = kept.node.lineno if file.cell == kept.file.cell else 0
                last = pair.lineno if pair is not None and file.cell == files[0].cell else 1 << 30
                between |= stepped_between(Lines(file, first, last), stepped, files, kept.model, names)
        sides = [one for one in (kept, other) if one is not None]
        if not between or is_known(kept.file) or any(_is_bound_again(one, files) for one in sides):
            return False
        trees = [file.tree for file in files if file.tree is not None]
        rounds = any(_is_double(names.get(one.name)) for one in sides) and _rounds(pair, sides)
        if rounds or any(is_trained_with(one.name, trees) for one in sides):
            return False
        model = names.get(kept.model)
        memory = _memory_of(model, between)
        all_of_it = _memory(module_tensors(model)) if memory else memory
        shown = all(_shows(names.get(one.name), memory, all_of_it) for one in sides)
        return shown and _meet([names.get(s.name) for s in sides])


def _is_followed(kept: Taken) -> bool:
    """True for a state dict itself: as one object it is seen wherever it goes, without the text."""
    return isinstance(kept.node, ast.Assign) and is_state(kept.node.value)


def _is_double(value: Any) -> bool:
    return any(is_a(one, torch.Tensor) and _dtype_of(one) is torch.float64 for one in _tensors(value))


def _rounds(pair: ast.expr | None, sides: list[Taken]) -> bool:
    """True if the text asks for 32 bits: of 64 these leave something out."""
    nodes = [one for one in (pair, *(side.node for side in sides)) if one is not None]
    return any(_TO_SINGLE.search(ast.unparse(one)) for one in nodes)


def _fact(kept: Taken, pair: ast.expr | None) -> ExpressionFact:
    place = Place(kept.file.cell, kept.node.lineno + kept.file.offset, "")
    writes = isinstance(pair, ast.Call) and isinstance(pair.func, ast.Attribute) and pair.func.attr == "copy_"
    told = (kept.name, kept.model, ast.unparse(pair) if pair is not None else "")
    target = "written" * writes
    text, sure = ast.unparse(kept.node), pair is not None  # else its name alone says what it is for
    return ExpressionFact("kept-weights", place, text, names=told, detail=kept.fix, target=target, sure=sure)


def _is_read(kept: Taken, files: list[CodeFile]) -> bool:
    """True if any line but those that fill it names a variable."""
    for file in files if kept.name in kept.file.code else ():
        filled = set(map(id, syntax.walk(kept.node))) if file is kept.file else set()
        nodes = syntax.walk(file.tree) if file.tree is not None and kept.name in file.code else ()
        named = (one for one in nodes if isinstance(one, ast.Name) and one.id == kept.name)
        if any(isinstance(one.ctx, ast.Load) and id(one) not in filled for one in named):
            return True
    return False


def _holds_parameters(value: Any) -> bool:
    """True for the parameters themselves: who wants to clip them, or to train them, keeps these."""
    return any(is_a(one, torch.Tensor) and as_torch.requires_grad(one) for one in _tensors(value))


def _shown(names: Mapping[str, Any], code: str, deadline: float) -> frozenset[str]:
    """Variables that a cell names and that hold tensors, none of them a copy as far as a look can tell."""
    named = set(_WORD.findall(code))
    own = takewhile(lambda _: thread_time() < deadline, islice(list(names.items()), _VARIABLES))
    return frozenset(name for name, one in own if name in named and not hidden(name) and _tensors(one))


def is_known(file: CodeFile) -> bool:
    """True if a cell says that memory is shared, or asks whether it is."""
    return _ON_PURPOSE.search(file.code) is not None or any(
        isinstance(one, (ast.Is, ast.IsNot)) and not isinstance(node.comparators[0], ast.Constant)
        for node in (syntax.walk(file.tree) if file.tree is not None else ())
        if isinstance(node, ast.Compare)
        for one in node.ops
    )


def _is_bound_again(kept: Taken, files: list[CodeFile]) -> bool:
    """True if a variable is given something below the statement that took the weights, wherever that is."""
    for file in files:
        first = (kept.node.end_lineno or kept.node.lineno) if file is kept.file else 0
        if any(line > first for line in _lines_of_giving(kept.name, file)):
            return True
        if file is kept.file:
            break
    return False


def _pairs(tree: ast.Module) -> Iterator[_Pair]:
    """What the lines of a cell compare, or subtract."""
    for node in syntax.own_expressions(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            yield _Pair(node, (node.left, node.right))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            yield _Pair(node, (node.left, node.comparators[0]))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COMPARES:
            sides = node.args if len(node.args) > 1 else [node.func.value, *node.args]
            if len(sides) > 1:
                yield _Pair(node, (sides[0], sides[1]))


def _lines_of_giving(name: str, file: CodeFile) -> list[int]:
    nodes = syntax.walk(file.tree) if file.tree is not None else ()
    named = (one for one in nodes if isinstance(one, ast.Name) and one.id == name)
    return [one.lineno for one in named if not isinstance(one.ctx, ast.Load)]


def _kept(
    pair: _Pair, tree: ast.Module, files: list[CodeFile], deadline: float
) -> Iterator[tuple[Taken, Taken | None]]:
    """Variables of a comparison that were taken from just what they are compared with; that, where it is another."""
    if is_meant(pair.node, tree) or not in_step(*pair.sides, tree):
        return
    ends = [origin(side, tree) for side in pair.sides]
    taken = [taken_in(one, pair.node.lineno, files, deadline) if one.isidentifier() else None for one in ends]
    for kept, other, text in ((taken[0], taken[1], ends[1]), (taken[1], taken[0], ends[0])):
        again = other.source if other is not None else text
        first = other is None or kept is None or _is_before(kept, other)
        if kept is not None and again == kept.source and first and (other is None or other.name != kept.name):
            yield kept, other


def _is_before(one: Taken, other: Taken) -> bool:
    return (one.file.cell or 0, one.node.lineno) < (other.file.cell or 0, other.node.lineno)


def _memory_of(model: Any, stepped: frozenset[int]) -> frozenset[int]:
    """The memory of a model's parameters that were stepped."""
    own = walk_parameters(model) if is_a(model, nn.Module) else ()
    return _memory(one for _, one in own if id(one) in stepped)


def _memory(tensors: Iterable[torch.Tensor]) -> frozenset[int]:
    """Where they are: of tensors their storage, for arrays the first address."""
    known = [(found[0], one.data_ptr()) for one in tensors if (found := private.storage_of(one))]
    return frozenset(address for both in known for address in both if address)


def _meet(values: list[Any]) -> bool:
    """True if none of the values shows other memory than the first."""
    known = [frozenset(map(_address, _tensors(one))) for one in values]
    return all(one & known[0] for one in known)


def _shows(value: Any, memory: frozenset[int], all_of_it: frozenset[int]) -> bool:
    """True for tensors or arrays that are all of them the model's very own, weights that were stepped among them."""
    known = [_address(one) for one in _tensors(value)]
    return any(one in memory for one in known) and all(one in all_of_it for one in known)


def _address(value: Any) -> int:
    if is_array(value):
        return int(value.__array_interface__["data"][0])
    found = private.storage_of(value)
    return found[0] if found is not None else 0


def _tensors(value: Any) -> list[Any]:
    """A tensor or array, or those of a list or dictionary of nothing else."""
    parts = [value]
    if is_one_of(value, (list, tuple)):
        parts = list(value[:_TENSORS])
    elif is_a(value, dict):
        parts = list(islice(dict.values(value), _TENSORS))
    return parts if all(is_a(one, torch.Tensor) or is_array(one) for one in parts) else []
