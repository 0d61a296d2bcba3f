"""Graphs that the user's variables keep alive after a cell: nodes, bytes, and the line that collects them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torch_inspector.facts import GraphFact, Place
from torch_inspector.observe import as_torch, layers, private
from torch_inspector.observe.fed import feeds_loss
from torch_inspector.observe.graph import GraphReader, Walk, chain_of, pass_count
from torch_inspector.observe.growth import Growth, growth, numbers_in
from torch_inspector.observe.lines import assignment_line
from torch_inspector.observe.patterns import kept_patterns
from torch_inspector.observe.remedy import past_numbers, remedy, rows_detached
from torch_inspector.observe.shapes import shape_of
from torch_inspector.observe.softmax import parents_of
from torch_inspector.observe.tensors_needed import needs_tensors

if TYPE_CHECKING:
    from torch_inspector.observe.namespace import Group, Names
    from torch_inspector.observe.place import CodeFile

# Groups of tensors with history that are looked at, the newest first.
_GROUPS = 24
# Fewer tensors, links or steps are no collection: no line is searched for them.
_SEVERAL = 3
_SORTS: tuple[tuple[Any, str], ...] = ((tuple, "tuple"), (list, "list"), (dict, "dict"))
# Behind the last line of any cell.
_ANY_LINE = 1 << 30
_NUMBERED = re.compile(r"\[-?\d+\](?=[\[.]|$)")


@dataclass
class _Kept:
    """Tensors with history under one path."""

    path: str
    container: bool
    nested: bool = False
    """True if they sit in elements of the container: `log[3]['loss']`."""
    tensors: list[torch.Tensor] = field(default_factory=list)
    sort: str = ""
    """`tuple`, `list` or `dict`, where the tensors are its elements; `mixed dict`, where others are too."""
    rows: bool = True
    """True if these elements are dictionaries with nothing but tensors in them."""
    parts: dict[str, None] = field(default_factory=dict)
    """Where in these elements they are: `['loss']`."""

    def newest(self) -> int:
        return max(self.numbers())

    def numbers(self) -> list[int]:
        return [private.node_number(as_torch.grad_fn(t)) for t in self.tensors]


class _Found(NamedTuple):
    """A tensor with history, and the container that holds it directly."""

    path: str
    tensor: torch.Tensor
    group: Group | None


def _kept(names: Names) -> list[_Kept]:
    """Tensors with history by variable or container; `outputs[3]['loss']` counts for `outputs`."""
    kept: dict[str, _Kept] = {}
    groups = [*names.groups.values(), *names.of_variables]
    found = [_Found(path, tensor, group) for group in groups for path, tensor in group.tensors]
    grouped = {id(one.tensor) for one in found}
    found += [_Found(path, tensor, None) for path, tensor in names.tensors if id(tensor) not in grouped]
    found = [one for one in found if as_torch.grad_fn(one.tensor) is not None]
    for one in found:
        listed = names.records.get(id(one.tensor), "")
        whole = one.group.element or one.group.path if one.group is not None else ""
        _add(kept, one, whole or (listed and f"{listed}[0]"))
    return list(kept.values())


def _add(kept: dict[str, _Kept], found: _Found, whole: str) -> None:
    """Counts a tensor for the container that it is in, or for itself."""
    place = _NUMBERED.sub("[*]", whole)
    short, group = place.split("[*]")[0], found.group
    nested = short != place
    one = kept.setdefault(
        f"{short}[*]" if nested else place or found.path, _Kept(short or found.path, bool(whole), nested)
    )
    one.tensors.append(found.tensor)
    one.rows = one.rows and group is not None and place.endswith("[*]") and _is_row(group)
    one.sort = _sort(group) if group is not None and not nested else ""
    own = _NUMBERED.sub("[*]", found.path)
    if nested and own.startswith(f"{short}[*]"):
        one.parts.setdefault(own.removeprefix(f"{short}[*]"))


def _sort(group: Group) -> str:
    sort = next((name for kind, name in _SORTS if type(group.container) is kind), "")
    return f"mixed {sort}" if sort and len(group.container) != len(group.tensors) else sort


def _is_row(group: Group) -> bool:
    return type(group.container) is dict and len(group.container) == len(group.tensors)


class RetainedGraphs:
    """Looks at kept graphs once per cell and remembers those that have not changed."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._known: dict[str, GraphFact] = {}

    def facts(self, names: Names, held: Callable[[], set[int]], since: int, deadline: float) -> tuple[GraphFact, ...]:
        """The graphs behind the user's tensors.

        Args:
            names: What the user's variables lead to.
            held: Gives storages that variables hold anyway; their bytes do not count as the graph's.
            since: Number of the first autograd node of this cell.
            deadline: `thread_time()` time at which to stop.
        """
        found = sorted(_kept(names), key=_Kept.newest, reverse=True)[:_GROUPS]
        numbers: dict[str, set[int]] = {}
        facts = []
        for kept in found:
            fact = self._known_fact(kept, since) or self._fact(kept, held, since, deadline, numbers)
            # Of a container that was not looked through, there may be more.
            whole = names.complete or not kept.container
            facts.extend([fact if whole else fact._replace(complete=False)] if fact is not None else [])
        self._known = {fact.path: fact for fact in facts}
        return tuple(fact._replace(derived_from=_source_of(fact, facts, numbers)) for fact in facts)

    def _known_fact(self, kept: _Kept, since: int) -> GraphFact | None:
        """What the last cell said, unless a backward call may have freed something since."""
        known = self._known.get(kept.path)
        marks = self._reader.marks
        if known is None or (marks and marks[-1] >= since):
            return None
        newest = kept.newest()
        same = (known.key, known.tensor_count) == (newest, len(kept.tensors)) and newest < since
        return known._replace(newest_nodes=0, grown_at=None, patterns=(), made_at=None) if same else None

    def _fact(
        self, kept: _Kept, held: Callable[[], set[int]], since: int, deadline: float, numbers: dict[str, set[int]]
    ) -> GraphFact | None:
        roots = [as_torch.grad_fn(t) for t in kept.tensors]
        walk = self._reader.walk(roots, deadline)
        if walk is None:
            return None
        own, chain = kept.numbers(), None if kept.container else chain_of(roots[0])
        numbers[kept.path] = walk.numbers
        steps = self._reader.steps(walk.numbers.union(own, chain.parts if chain else ()))
        storages = {s[0]: s[1] for t in kept.tensors if (s := private.storage_of(t)) is not None}
        spent = walk.freed_count > 0 and walk.live_count == 0
        return GraphFact(
            path=kept.path,
            tensor_count=len(own),
            node_count=len(walk.nodes),
            saved_nbytes=walk.saved_nbytes(held()) if walk.saved_nbytes() else 0,
            scalar=all(layers.number_of(t) == 1 for t in kept.tensors),
            spent=spent,
            sum_length=chain.length if chain else 0,
            differentiated=steps >= _SEVERAL,
            complete=walk.complete,
            container=kept.container,
            newest_nodes=sum(number >= since for number in own),
            key=max(own),
            nbytes=sum(storages.values()),
            step_count=steps,
            pass_count=pass_count(walk, chain.parts, chain.links) if chain else pass_count(walk, own),
            nested=kept.nested,
            sort=kept.sort,
            rows=kept.nested and kept.rows,
            parts=tuple(kept.parts),
            as_number=all(shape_of(t) == () for t in kept.tensors),
            patterns=kept_patterns(walk, kept.tensors) if max(own) >= since else (),
            leaf_count=len(walk.leaf_keys) + _constant_count(walk) if chain else 0,
        )


def _constant_count(walk: Walk) -> int:
    return sum(None in parents_of(node) for node in walk.by_kind.get("AddBackward0", ()))


def _source_of(fact: GraphFact, facts: list[GraphFact], numbers: dict[str, set[int]]) -> str:
    """Path of a collection or a total from which a variable was computed."""
    seen = numbers.get(fact.path, set())
    others = (f for f in facts if f.key < fact.key and f.key in seen and _several(f))
    return "" if fact.container else next((f.path for f in others), "")


def _several(fact: GraphFact) -> bool:
    return max(fact.tensor_count, fact.sum_length, fact.step_count, fact.pass_count) >= _SEVERAL


def with_places(facts: tuple[GraphFact, ...], files: list[CodeFile]) -> tuple[GraphFact, ...]:
    """The same facts with the line that collects each group, for those that grew in this cell.

    Args:
        facts: Graphs kept after the cell.
        files: Code to search, the cell's own first.
    """
    made = tuple(_with_line(fact, files[:1]) if fact.patterns else fact for fact in facts)
    return tuple(_placed(fact, files) if fact.newest_nodes and _several(fact) else fact for fact in made)


def _with_line(fact: GraphFact, files: list[CodeFile]) -> GraphFact:
    """The same with the last line of the cell that gives the variable a value."""
    for file in files:
        line = assignment_line(file.tree, fact.path, _ANY_LINE) if file.tree is not None else None
        if line is not None:
            return fact._replace(made_at=Place(file.cell, line + file.offset))
    return fact


def _is_read_elsewhere(fact: GraphFact) -> bool:
    """True for what an object collects in a list before any backward call: a later cell may join the tensors."""
    return fact.container and "." in fact.path and not fact.differentiated


def _placed(fact: GraphFact, files: list[CodeFile]) -> GraphFact:
    found: list[tuple[tuple[bool, int, int], Growth, CodeFile]] = []
    trees = [one.tree for one in files if one.tree is not None]
    plain = numbers_in(trees)
    for index, file in enumerate(files):
        functions_only = index > 0 and not file.timed
        code = file.tree
        one = growth(code, fact.path, functions_only=functions_only, numbers=plain) if code is not None else None
        if one is not None:
            found.append(((*one.rank()[:2], -index), one, file))
    if not found:
        return fact
    _, best, file = max(found, key=lambda each: each[0])
    may_feed = fact.container if best.kind != "sum" else not (fact.container or fact.differentiated)
    fed = may_feed and feeds_loss(trees, best)
    read = any(needs_tensors(tree, best) for tree in trees)
    number = fact.scalar and fact.as_number and not (read or _is_read_elsewhere(fact))
    text = "" if fact.nested else past_numbers(best, remedy(best, "item" if number else "detach"), trees)
    text = rows_detached(best) if fact.rows else text
    return fact._replace(
        as_number=number,
        feeds_loss=fed,
        grown_at=Place(file.cell, best.line + file.offset),
        grown_by=best.kind,
        remedy=text,
    )
