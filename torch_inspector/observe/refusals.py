"""What is behind an error that autograd raises in a backward pass: which variables brought the graph to it.

Looked at only where the message is one of a few; the nodes of the graph are still there, whatever it had saved is gone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from time import thread_time
from typing import TYPE_CHECKING

import torch

from torch_inspector.facts import ChangeFact, ErrorFact, NamedFact, Place, RefusalFact
from torch_inspector.observe import as_torch, caching, carrying, culprits, detaching, failing, kinds, lines, private
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.raised import traceback_of
from torch_inspector.observe.scenes import Scene, Seen, held_in, scenes_of, tensors_of

if TYPE_CHECKING:
    from torch_inspector.observe.graph import GraphReader, Walk
    from torch_inspector.observe.place import Places

TWICE = "backward through the graph a second time"
CHANGED = "has been modified by an inplace operation"
SCALAR = "grad can be implicitly created only for scalar outputs"
NO_GRAPH = "does not require grad and does not have a grad_fn"
_REFUSALS = (TWICE, CHANGED, SCALAR, NO_GRAPH)
# Functions of torch that hold what was differentiated, and what they call it.
_ENGINE = {"_engine_run_backward": "t_outputs", "_make_grads": "outputs"}
# Seconds for one look at the graph and the variables; the cell has failed, so there is nothing to hurry for.
_PATIENCE_S = 0.05
_LONGEST, _MOST = 60, 4
# Nodes behind a state that are read: those of one step of a recurrent layer.
_FEW = 600


def is_refusal(fact: ErrorFact) -> bool:
    """True if the message is one of those that are looked into."""
    return any(text in fact.message for text in _REFUSALS)


def refusal_fact(error: BaseException, fact: ErrorFact, places: Places, reader: GraphReader) -> RefusalFact | None:
    """What led to an error in a backward pass; None if its root is not found."""
    scenes, roots = scenes_of(error, places), _roots_of(error)
    if not scenes or not roots:
        return None
    with private.unseen():
        return _Look(scenes, roots, fact, reader, places).fact(error)


def _roots_of(error: BaseException) -> list[torch.Tensor]:
    """The tensors that were differentiated, as torch's own frames hold them."""
    entry, found = traceback_of(error), []
    while entry is not None:
        name = _ENGINE.get(entry.tb_frame.f_code.co_name)
        if name is not None and str(entry.tb_frame.f_globals.get("__name__")).startswith("torch."):
            with locals_of(entry.tb_frame) as values:
                given = values.get(name)
                found = list(given) if isinstance(given, (tuple, list)) else []
        entry = entry.tb_next
    return [one for one in found if kinds.is_a(one, torch.Tensor)]


@dataclass
class _Look:
    """One look. Holds the user's objects: drop it at once."""

    scenes: list[Scene]
    roots: list[torch.Tensor]
    error: ErrorFact
    reader: GraphReader
    places: Places

    def fact(self, error: BaseException) -> RefusalFact:
        seen = [(scene, one) for scene in self.scenes for one in tensors_of(scene)]
        root = self._root()
        given, names = self._expression(error), [one.path for _, one in seen if one.tensor is root]
        named = given if given in names else next(iter(names), "")
        at = self._place(self.scenes[0], self._given_at(self.scenes[0], named)) if named else None
        outer = [one.path for scene, one in seen if one.tensor is root and scene is not self.scenes[0]]
        fact = RefusalFact(
            root=named or given,
            known_as=outer[0] if outer and outer[0] != named else "",
            named=bool(named),
            shape=tuple(as_torch.shape(root)),
            number=private.node_number(as_torch.grad_fn(root)) if as_torch.grad_fn(root) is not None else -1,
            made_at=at,
            in_loop=self._in_loop(self.scenes[0]),
        )
        if NO_GRAPH in self.error.message:
            recorded = tuple(dict.fromkeys(s.owner for _, s in seen if as_torch.requires_grad(s.tensor)))
            return fact._replace(recorded=recorded, frozen=self._frozen(seen)[:_MOST])
        return fact if SCALAR in self.error.message else self._with_graph(fact, seen)

    def _frozen(self, seen: list[tuple[Scene, Seen]]) -> tuple[str, ...]:
        """Plain tensors that an optimizer of the user's frames holds, and that want no gradient, each once."""
        held = frozenset[int]().union(*map(held_in, self.scenes))
        plain = [one for _, one in seen if type(one.tensor) is torch.Tensor and not as_torch.requires_grad(one.tensor)]
        # The last name is that of the outermost frame, where the optimizer is made as a rule.
        names = {id(one.tensor): one.path for one in plain if id(one.tensor) in held}
        return tuple(names.values())

    def _root(self) -> torch.Tensor:
        """Of several, the one that is no number, where that is what was refused."""
        many = [one for one in self.roots if as_torch.numel(one) != 1]
        return many[0] if many and SCALAR in self.error.message else self.roots[0]

    def _expression(self, error: BaseException) -> str:
        """What stands before `.backward()`, if that is short."""
        import ast

        scene = self.scenes[0]
        entry = traceback_of(error)
        while entry is not None and entry.tb_frame is not scene.frame:
            entry = entry.tb_next
        if entry is None or scene.file.tree is None:
            return ""
        for one in failing.failing_expressions(scene.file.tree, entry):
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "backward":
                text = ast.unparse(one.func.value)
                return text if len(text) <= _LONGEST else ""
        return ""

    def _given_at(self, scene: Scene, name: str) -> int | None:
        return lines.assignment_line(scene.file.tree, name, scene.line) if scene.file.tree is not None else None

    def _place(self, scene: Scene, line: int | None) -> Place | None:
        return self.places.place(scene.frame, line) if line is not None else None

    def _in_loop(self, scene: Scene) -> bool:
        return scene.file.tree is not None and bool(lines.loops_around(scene.file.tree, scene.line))

    def _with_graph(self, fact: RefusalFact, seen: list[tuple[Scene, Seen]]) -> RefusalFact:
        nodes = [as_torch.grad_fn(root) for root in self.roots if as_torch.grad_fn(root) is not None]
        walk = self.reader.walk(nodes, thread_time() + _PATIENCE_S)
        if walk is None:
            return fact
        border = self._border(fact.number)
        olds = [(s, one) for s, one in seen if _is_inside(one, walk) and _number(one.tensor) < border]
        newer = {one.owner for _, one in seen if _is_inside(one, walk) and _number(one.tensor) >= border}
        crossed = _crossed(walk, border)
        carried = tuple(self._carried(seen, walk, border, newer))
        fresh = [(s, one) for s, one in olds if one.owner not in {c.path for c in carried}]
        fresh.sort(key=lambda pair: (_number(pair[1].tensor) not in crossed, -_number(pair[1].tensor)))
        return fact._replace(
            is_old=0 <= fact.number < border,
            carried=carried[:_MOST],
            olds=tuple(_once([self._named(s, one, newer) for s, one in fresh]))[:_MOST],
            changes=self._changes(seen, walk)[:_MOST] if CHANGED in self.error.message else (),
        )

    def _changes(self, seen: list[tuple[Scene, Seen]], walk: Walk) -> tuple[ChangeFact, ...]:
        told = culprits.changed_value(self.error.message)
        if told is None:
            return ()
        return culprits.Culprits(told, self.scenes, [one for _, one in seen], walk, self.places).changes()

    def _border(self, number: int) -> int:
        """How many nodes there were when the last backward call before the failing one began."""
        marks = self.reader.marks
        # The failing call has noted itself, unless it was a call of `grad()`.
        own = bisect_right(marks, number) < len(marks)
        earlier = marks[:-1] if own else marks
        return earlier[-1] if earlier else 0

    def _carried(self, seen: list[tuple[Scene, Seen]], walk: Walk, border: int, newer: set[str]) -> Iterator[NamedFact]:
        """Variables that a loop reads before it sets them, attributes that a method does, if they cross the border."""
        crossed = _crossed(walk, border)
        if not crossed:
            return
        kept, cells = self._kept_attributes(), tuple(f.tree for f in self.places.latest() if f.tree is not None)
        told, told_tensors = set[str](), set[int]()
        for scene, one in seen:
            tree = scene.file.tree
            if tree is None or one.owner in told or id(one.tensor) in told_tensors:
                told.add(one.owner)  # another name for the same
                continue
            in_loop = one.owner in carrying.carried_at(tree, scene.line, cells)
            kept_by_object = one.owner.count(".") and one.owner.rpartition(".")[2] in kept
            if (in_loop or kept_by_object) and (_is_inside(one, walk) or self._reaches(one.tensor, crossed)):
                told.add(one.owner)
                told_tensors.add(id(one.tensor))
                line = carrying.line_of(tree, one.owner, scene.line) if in_loop else None
                named = NamedFact(one.owner, one.kind, tuple(one.tensor.shape), self._place(scene, line))
                named = named._replace(added_to=_added_to(one, newer))
                if one.container is not None:
                    named = named._replace(detached=detaching.statement_for(one.owner, one.container))
                yield self._cached(scene, one, named)

    def _cached(self, scene: Scene, one: Seen, named: NamedFact) -> NamedFact:
        """The variable, with the statement that computes it once, where that reads parameters."""
        own = one.owner.rpartition(".")
        name = f"self.{own[2]}" if own[0] else one.owner
        trees = [file for file in (scene.file, *self.places.latest()) if file.tree is not None]
        found = [(file, caching.caches(file.tree)[name]) for file in trees if name in caching.caches(file.tree)]
        if not found or not self._has_parameters(one.tensor):
            return named
        file, cache = found[0]
        return named._replace(cached=cache.text, made_at=culprits.place_in(file, cache.line))

    def _has_parameters(self, tensor: torch.Tensor) -> bool:
        walk = (
            self.reader.walk([as_torch.grad_fn(tensor)], thread_time() + _PATIENCE_S / 4, _FEW)
            if as_torch.grad_fn(tensor)
            else None
        )
        leaves = walk.by_kind.get("AccumulateGrad", ()) if walk is not None else ()
        return any(kinds.is_a(node.variable, torch.nn.Parameter) for node in leaves)

    def _reaches(self, tensor: torch.Tensor, crossed: set[int]) -> bool:
        """True if a tensor beside the loss, such as the state for the next step, comes from the same old nodes."""
        if _number(tensor) < 0:
            return False
        walk = self.reader.walk([as_torch.grad_fn(tensor)], thread_time() + _PATIENCE_S / 4, _FEW)
        return walk is not None and not crossed.isdisjoint(walk.numbers)

    def _kept_attributes(self) -> frozenset[str]:
        trees = [file.tree for file in self.places.latest() if file.tree is not None]
        return frozenset[str]().union(*map(carrying.kept_attributes, trees))

    def _named(self, scene: Scene, one: Seen, newer: set[str]) -> NamedFact:
        line = self._given_at(scene, one.owner)
        place = self._place(scene, line) or self._earlier_place(one.owner)
        return NamedFact(one.path, one.kind, tuple(one.tensor.shape), place, added_to=_added_to(one, newer))

    def _earlier_place(self, name: str) -> Place | None:
        """The line of an earlier cell that gave a variable its value."""
        for file in self.places.latest():
            line = lines.assignment_line(file.tree, name, 1 << 30) if file.tree is not None else None
            if line is not None:
                return Place(file.cell, line + file.offset)
        return None


def _added_to(one: Seen, newer: set[str]) -> str:
    """The list of an element, if newer ones were added; a deque forgets by itself, and is to keep what is newest."""
    return one.owner if one.owner in newer and one.kind == "list" else ""


def _number(tensor: torch.Tensor) -> int:
    try:
        node = as_torch.grad_fn(tensor)
    except RuntimeError:  # a view whose base was changed in a way that torch forbids
        return -1
    return private.node_number(node) if node is not None else -1


def _is_inside(one: Seen, walk: Walk) -> bool:
    return _number(one.tensor) in walk.numbers


def _crossed(walk: Walk, border: int) -> set[int]:
    """Numbers of the nodes from before the border that newer ones were computed from."""
    found = set[int]()
    for node in walk.nodes.values():
        if private.node_number(node) >= border and not private.is_leaf_node(node):
            parents = [parent for parent, _ in node.next_functions if parent is not None]
            found.update(private.node_number(p) for p in parents if not private.is_leaf_node(p))
    return {number for number in found if 0 <= number < border}


def _once(named: list[NamedFact]) -> Iterator[NamedFact]:
    told = set[str]()
    for one in named:
        if one.path not in told:
            told.add(one.path)
            yield one
