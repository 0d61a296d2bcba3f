"""Graphs that the user's variables keep alive after a cell: nodes, bytes, and the line that collects them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from torch_inspector.facts import GraphFact, Place
from torch_inspector.observe import layers, lines, private
from torch_inspector.observe.graph import GraphReader, sum_length

if TYPE_CHECKING:
    from torch_inspector.observe.namespace import Names
    from torch_inspector.observe.place import CodeFile

# Groups of tensors with history that are looked at, the newest first.
_GROUPS = 24
_NUMBERED = re.compile(r"\[-?\d+\]")


@dataclass
class _Kept:
    """Tensors with history under one path."""

    path: str
    container: bool
    tensors: list[torch.Tensor] = field(default_factory=list)

    def newest(self) -> int:
        return max(private.node_number(t.grad_fn) for t in self.tensors)


def _kept(names: Names) -> list[_Kept]:
    """Tensors with history by variable or container; `outputs[3]['loss']` counts for `outputs`."""
    kept: dict[str, _Kept] = {}
    grouped: set[int] = set()
    for group in names.groups.values():
        path = _NUMBERED.sub("[*]", group.path)
        for _, tensor in group.tensors:
            grouped.add(id(tensor))
            if tensor.grad_fn is not None:
                kept.setdefault(path, _Kept(path.split("[*]")[0], container=True)).tensors.append(tensor)
    for path, tensor in names.tensors:
        if id(tensor) not in grouped and tensor.grad_fn is not None:
            kept.setdefault(path, _Kept(path, container=False)).tensors.append(tensor)
    return list(kept.values())


class RetainedGraphs:
    """Looks at kept graphs once per cell and remembers those that have not changed."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self._known: dict[str, GraphFact] = {}

    def facts(self, names: Names, held: set[int], since: int, deadline: float) -> tuple[GraphFact, ...]:
        """The graphs behind the user's tensors.

        Args:
            names: What the user's variables lead to.
            held: Storages that variables hold anyway; their bytes do not count as the graph's.
            since: Number of the first autograd node of this cell.
            deadline: `perf_counter()` time at which to stop.
        """
        found = sorted(_kept(names), key=_Kept.newest, reverse=True)[:_GROUPS]
        facts = tuple(fact for kept in found if (fact := self._fact(kept, held, since, deadline)) is not None)
        self._known = {fact.path: fact for fact in facts}
        return facts

    def _fact(self, kept: _Kept, held: set[int], since: int, deadline: float) -> GraphFact | None:
        newest, count = kept.newest(), len(kept.tensors)
        known = self._known.get(kept.path)
        if known is not None and (known.key, known.tensor_count) == (newest, count) and newest < since:
            return known._replace(newest_nodes=0, grown_at=None)
        walk = self._reader.walk([t.grad_fn for t in kept.tensors], deadline)
        if walk is None:
            return None
        saved = walk.saved_nbytes(held)
        own = {s[0]: s[1] for t in kept.tensors if (s := private.storage_of(t)) is not None}
        return GraphFact(
            path=kept.path,
            tensor_count=count,
            node_count=len(walk.nodes),
            saved_nbytes=saved,
            scalar=all(layers.number_of(t) == 1 for t in kept.tensors),
            spent=walk.freed_count > 0 and walk.live_count == 0,
            sum_length=0 if kept.container else sum_length(kept.tensors[0].grad_fn),
            differentiated=False,
            complete=walk.complete,
            container=kept.container,
            newest_nodes=sum(private.node_number(t.grad_fn) >= since for t in kept.tensors),
            key=newest,
            grown_at=None,
            nbytes=sum(own.values()),
        )


def with_places(facts: tuple[GraphFact, ...], files: list[CodeFile], roots: frozenset[str]) -> tuple[GraphFact, ...]:
    """The same facts with the line that collects each group, for those that grew in this cell.

    Args:
        facts: Graphs kept after the cell.
        files: Code to search, the cell's own first.
        roots: Names of the losses that `backward()` was called on.
    """
    return tuple(_placed(fact, files, roots) if fact.newest_nodes else fact for fact in facts)


def _placed(fact: GraphFact, files: list[CodeFile], roots: frozenset[str]) -> GraphFact:
    for file in files:
        line = lines.growth_line(file.tree, fact.path) if file.tree is not None else None
        if line is not None and file.tree is not None:
            collected = set(lines.names_on_line(file.tree, line))
            differentiated = fact.path not in roots and bool(roots & collected)
            return fact._replace(grown_at=Place(file.cell, line + file.offset), differentiated=differentiated)
    return fact
