"""What is behind an error that autograd raises in a backward pass: which variables brought the graph to it.

Looked at only where the message is one of a few; the nodes of the graph are still there, whatever it had saved is gone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from time import thread_time
from typing import TYPE_CHECKING

import torch

from torch_inspector.facts import ChangeFact, ErrorFact, NamedFact, Place, RefusalFact, syntax
from torch_inspector.observe import caching, carrying, detaching, failing, kinds, lines, mutations, private
from torch_inspector.observe.copied_reads import read_copied, same_attribute
from torch_inspector.observe.locals import locals_of
from torch_inspector.observe.raised import traceback_of
from torch_inspector.observe.scenes import Scene, Seen, held_in, scenes_of, tensors_of
from torch_inspector.observe.versions import version_of

if TYPE_CHECKING:
    from torch_inspector.observe.graph import GraphReader, Walk
    from torch_inspector.observe.place import CodeFile, Places

TWICE = "backward through the graph a second time"
CHANGED = "has been modified by an inplace operation"
SCALAR = "grad can be implicitly created only for scalar outputs"
NO_GRAPH = "does not require grad and does not have a grad_fn"
_REFUSALS = (TWICE, CHANGED, SCALAR, NO_GRAPH)
# Functions of torch that hold what was differentiated, and what they call it.
_ENGINE = {"_engine_run_backward": "t_outputs", "_make_grads": "outputs"}
# Seconds for one look at the graph and the variables; the cell has failed, so there is nothing to hurry for.
_PATIENCE_S = 0.05
_CHANGED_IS = re.compile(r"\[[\w.]+Tensor \[([\d, ]*)\]\](?:, which is output \d+ of (\w+?),)? is at version (\d+)")
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
            shape=tuple(root.shape),
            number=private.node_number(root.grad_fn) if root.grad_fn is not None else -1,
            made_at=at,
            in_loop=self._in_loop(self.scenes[0]),
        )
        if NO_GRAPH in self.error.message:
            recorded = tuple(dict.fromkeys(s.owner for _, s in seen if s.tensor.requires_grad))
            return fact._replace(recorded=recorded, frozen=self._frozen(seen)[:_MOST])
        return fact if SCALAR in self.error.message else self._with_graph(fact, seen)

    def _frozen(self, seen: list[tuple[Scene, Seen]]) -> tuple[str, ...]:
        """Plain tensors that an optimizer of the user's frames holds, and that want no gradient, each once."""
        held = frozenset[int]().union(*map(held_in, self.scenes))
        plain = [one for _, one in seen if type(one.tensor) is torch.Tensor and not one.tensor.requires_grad]
        # The last name is that of the outermost frame, where the optimizer is made as a rule.
        names = {id(one.tensor): one.path for one in plain if id(one.tensor) in held}
        return tuple(names.values())

    def _root(self) -> torch.Tensor:
        """Of several, the one that is no number, where that is what was refused."""
        many = [one for one in self.roots if one.numel() != 1]
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
        nodes = [root.grad_fn for root in self.roots if root.grad_fn is not None]
        walk = self.reader.walk(nodes, thread_time() + _PATIENCE_S)
        if walk is None:
            return fact
        border = self._border(fact.number)
        olds = [(s, one) for s, one in seen if _is_inside(one, walk) and _number(one.tensor) < border]
        crossed = _crossed(walk, border)
        carried = tuple(self._carried(seen, walk, border))
        fresh = [(s, one) for s, one in olds if one.owner not in {c.path for c in carried}]
        fresh.sort(key=lambda pair: (_number(pair[1].tensor) not in crossed, -_number(pair[1].tensor)))
        return fact._replace(
            is_old=0 <= fact.number < border,
            carried=carried[:_MOST],
            olds=tuple(_once([self._named(s, one) for s, one in fresh]))[:_MOST],
            changes=tuple(self._changes(seen, walk))[:_MOST] if CHANGED in self.error.message else (),
        )

    def _border(self, number: int) -> int:
        """How many nodes there were when the last backward call before the failing one began."""
        marks = self.reader.marks
        # The failing call has noted itself, unless it was a call of `grad()`.
        own = bisect_right(marks, number) < len(marks)
        earlier = marks[:-1] if own else marks
        return earlier[-1] if earlier else 0

    def _carried(self, seen: list[tuple[Scene, Seen]], walk: Walk, border: int) -> Iterator[NamedFact]:
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
        return named._replace(cached=cache.text, made_at=self._place_in(file, cache.line))

    def _has_parameters(self, tensor: torch.Tensor) -> bool:
        walk = self.reader.walk([tensor.grad_fn], thread_time() + _PATIENCE_S / 4, _FEW) if tensor.grad_fn else None
        leaves = walk.by_kind.get("AccumulateGrad", ()) if walk is not None else ()
        return any(kinds.is_a(node.variable, torch.nn.Parameter) for node in leaves)

    def _reaches(self, tensor: torch.Tensor, crossed: set[int]) -> bool:
        """True if a tensor beside the loss, such as the state for the next step, comes from the same old nodes."""
        if _number(tensor) < 0:
            return False
        walk = self.reader.walk([tensor.grad_fn], thread_time() + _PATIENCE_S / 4, _FEW)
        return walk is not None and not crossed.isdisjoint(walk.numbers)

    def _kept_attributes(self) -> frozenset[str]:
        trees = [file.tree for file in self.places.latest() if file.tree is not None]
        return frozenset[str]().union(*map(carrying.kept_attributes, trees))

    def _named(self, scene: Scene, one: Seen) -> NamedFact:
        line = self._given_at(scene, one.owner)
        place = self._place(scene, line) or self._earlier_place(one.owner)
        return NamedFact(one.path, one.kind, tuple(one.tensor.shape), place)

    def _earlier_place(self, name: str) -> Place | None:
        """The line of an earlier cell that gave a variable its value."""
        for file in self.places.latest():
            line = lines.assignment_line(file.tree, name, 1 << 30) if file.tree is not None else None
            if line is not None:
                return Place(file.cell, line + file.offset)
        return None

    def _changes(self, seen: list[tuple[Scene, Seen]], walk: Walk) -> list[ChangeFact]:
        told = _CHANGED_IS.search(self.error.message)
        if told is None:
            return []
        shape = tuple(int(n) for n in told[1].split(",") if n.strip())
        wanted = {one.path for _, one in seen if _is_changed(one.tensor, shape, int(told[3]))}
        # A tensor that was changed is named after the change, unless what was saved is an older result.
        followers = _followers(walk, told[2] or "", shape) | {told[2] or ""}
        ranked = []
        for file, one, near in self._written():
            afar = not near and same_attribute(one.path, wanted)
            named = afar or (near and one.path in wanted)
            meant = any(mutations.matches(one.operation, kind) for kind in followers)
            if named or meant:
                place = self._place_in(file, one.line)
                copied = read_copied(file, one.path, one.line) if afar else ""
                change = ChangeFact(one.path, place, one.text, copied or one.remedy_for(told[2] or ""), named)
                # A part that is written once, before the loop that reads it, is what it was when it is read.
                once = file.tree is not None and not lines.loops_around(file.tree, one.line)
                ranked.append(((not named, not meant, not near, one.operation == "CopySlices" and once), change))
        ranked.sort(key=lambda entry: entry[0])
        return [change for _, change in ranked] or self._of_element(followers)

    def _of_element(self, followers: set[str]) -> list[ChangeFact]:
        """The only statement that may have changed one of a list of tensors: `levels[i] += x`."""
        written = [(file, one) for file, one, _ in self._written() if one.element]
        found = [pair for pair in written if any(mutations.matches(pair[1].element, kind) for kind in followers)]
        changes = [(self._place_in(file, one.line), one.of_element()) for file, one in found]
        facts = [ChangeFact(one.path, place, one.text, one.remedy) for place, one in changes]
        return facts if len(facts) == 1 else []

    def _written(self) -> Iterator[tuple[CodeFile, mutations.Mutation, bool]]:
        """Statements in place in the user's frames, up to the failing line or in its loop, then in other functions."""
        told = set()
        for scene in self.scenes:
            for one in mutations.mutations(scene.file.tree) if scene.file.tree is not None else ():
                loops = lines.loops_around(scene.file.tree, scene.line)
                last = max([scene.line, *(last for _, last in loops)])
                if one.line <= last and (scene.file.code, one.line) not in told:
                    told.add((scene.file.code, one.line))
                    yield scene.file, one, True
        for file in self.places.latest():
            for one in mutations.mutations(file.tree) if file.tree is not None else ():
                if (file.code, one.line) not in told:
                    told.add((file.code, one.line))
                    yield file, one, False

    def _place_in(self, file: CodeFile, line: int) -> Place:
        scope = syntax.scope_at(file.tree, line) if file.tree is not None else None
        return Place(file.cell, line + file.offset, getattr(scope, "name", ""))


def _number(tensor: torch.Tensor) -> int:
    try:
        node = tensor.grad_fn
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


def _is_changed(tensor: torch.Tensor, shape: tuple[int, ...], version: int) -> bool:
    """True if this may be the tensor that the message tells of; views share the count of what they show."""
    if tensor.is_inference():
        return False
    same = tuple(tensor.shape) == shape or tuple(tensor.shape) == shape[::-1]
    return same and version_of(tensor) >= version > 0


def _followers(walk: Walk, operation: str, shape: tuple[int, ...]) -> set[str]:
    """Kinds of the nodes that took the result of the operation that the message names."""
    stem = operation.partition("Backward")[0]
    named = {
        id(node)
        for node in walk.nodes.values()
        if stem and type(node).__name__.startswith(f"{stem}Backward") and private.output_shape(node) in (shape, None)
    }
    return {
        type(node).__name__
        for node in walk.nodes.values()
        if any(id(parent) in named for parent, _ in getattr(node, "next_functions", ()) if parent is not None)
    }
