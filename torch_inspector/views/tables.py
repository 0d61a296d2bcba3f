"""Facts as tables, one function per kind of fact; rows without a name that the user could type are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from torch_inspector.facts import (
    CountFact,
    GraphFact,
    HolderFact,
    LayerCounts,
    LoaderFact,
    MemoryFact,
    ModuleFact,
    OptimizerFact,
    Place,
    TensorFact,
)
from torch_inspector.views.card import Table
from torch_inspector.views.plain import clip
from torch_inspector.views.quantity import count, shape, size
from torch_inspector.views.words import line_name

ROW_COUNT = 20
"""Rows of one table; the caption says how many there are in all."""
_CELL_LIMIT = 200
# The place in a list, with which the path of an entry ends; rows that differ in nothing else are one from so many on.
_INDEX = re.compile(r"\[\d{1,9}\]$")
_MANY = 3
# The end of every node's name, which says nothing: `MeanBackward1` is a mean.
_BACKWARD = re.compile(r"Backward\d*$")


def tensor_table(
    tensors: Iterable[TensorFact], what: str, *, row_count: int = ROW_COUNT, complete: bool = True
) -> Table:
    """Tensors from the largest on; a view shows what it keeps alive."""
    ordered = sorted(tensors, key=lambda fact: fact.storage_nbytes, reverse=True)
    alike = _alike(ordered)
    rows = tuple(_tensor_row(group) for group in alike[:row_count])
    return Table(
        rows,
        ("tensor", "shape", "dtype", "device", "size", "grad_fn"),
        _caption(what, len(ordered), sum(map(len, alike[:row_count])), complete=complete),
        (4,),
    )


def _alike(tensors: Iterable[TensorFact]) -> list[list[TensorFact]]:
    """Entries of one list that differ in their index only are one row, from three on: `losses[0]` to `losses[63]`."""
    groups: dict[tuple[str, ...], list[TensorFact]] = {}
    for one in tensors:
        groups.setdefault((_INDEX.sub("[]", one.path), *_tensor_row([one])[1:]), []).append(one)
    return [
        part for group in groups.values() for part in ([group] if len(group) >= _MANY else [[one] for one in group])
    ]


def _tensor_row(group: Sequence[TensorFact]) -> tuple[str, ...]:
    first, last, many = group[0], group[-1], len(group) > 1
    path = f"{first.path} to {last.path}" if many else first.path
    nbytes = f"{count(len(group))} times {_tensor_size(first)}" if many else _tensor_size(first)
    return (path, shape(first.shape), _dtype(first.dtype), first.device, nbytes, _history(first))


def graph_table(graphs: Iterable[GraphFact], what: str, *, complete: bool = True) -> Table:
    """Autograd graphs from the one that keeps most on."""
    ordered = sorted(graphs, key=lambda fact: (fact.saved_nbytes, fact.node_count), reverse=True)
    rows = tuple(
        (g.path, count(g.tensor_count), *_graph_figures(g), "used up" if g.spent else "") for g in ordered[:ROW_COUNT]
    )
    return Table(
        rows,
        ("held by", "tensors", "nodes", "activations", "state"),
        _caption(what, len(ordered), complete=complete),
        (1, 2, 3),
    )


def holder_table(holders: Iterable[HolderFact], *, complete: bool = True) -> Table:
    """What IPython itself keeps alive, from the largest on."""
    ordered = sorted(holders, key=lambda fact: fact.nbytes, reverse=True)
    rows = tuple(
        (h.path, h.kind, shape(h.shape), h.device, size(h.nbytes), size(h.graph_nbytes)) for h in ordered[:ROW_COUNT]
    )
    columns = ("held by", "kind", "shape", "device", "size", "of it in a graph")
    return Table(rows, columns, _caption("Kept by the notebook", len(ordered), complete=complete), (4, 5))


def module_table(modules: Iterable[ModuleFact], *, complete: bool = True) -> Table:
    """Modules that a variable leads to, with mode, devices and numbers in their parameters."""
    named = [module for module in modules if module.path]
    rows = tuple((m.path, m.kind, _mode(m), ", ".join(m.devices), _parameters(m)) for m in named[:ROW_COUNT])
    return Table(
        rows,
        ("module", "kind", "mode", "device", "parameters"),
        _caption("Modules", len(named), complete=complete),
        (4,),
    )


def optimizer_table(optimizers: Iterable[OptimizerFact], *, complete: bool = True) -> Table:
    """Optimizers with what they hold."""
    rows = tuple(
        (o.path or "no name", o.kind, _rate(o.learning_rate), count(o.parameter_count), size(o.state_nbytes))
        for o in optimizers
    )
    columns = ("optimizer", "kind", "learning rate", "parameter tensors", "state")
    return Table(rows[:ROW_COUNT], columns, _caption("Optimizers", len(rows), complete=complete), (2, 3, 4))


def memory_table(memory: Iterable[MemoryFact]) -> Table:
    """Memory of each device now."""
    rows = tuple(
        (
            m.device,
            size(m.allocated_nbytes),
            *map(_size, (m.reserved_nbytes, m.peak_nbytes, m.free_nbytes, m.total_nbytes)),
        )
        for m in memory
    )
    return Table(
        rows[:ROW_COUNT],
        ("device", "in use", "reserved", "peak", "free", "total"),
        _caption("Memory", len(rows)),
        (1, 2, 3, 4, 5),
    )


def memory_change_table(before: Iterable[MemoryFact], after: Iterable[MemoryFact]) -> Table:
    """Memory of each device before, after and at its highest while the cell ran."""
    first = {fact.device: fact for fact in before}
    old = {device: fact.allocated_nbytes for device, fact in first.items()}
    rows = tuple(
        (m.device, _size(old.get(m.device)), size(m.allocated_nbytes), _change(m, old), _peak(m, first.get(m.device)))
        for m in after
    )
    return Table(
        rows[:ROW_COUNT],
        ("device", "before", "after", "change", "peak in the cell"),
        _caption("Memory", len(rows)),
        (1, 2, 3, 4),
    )


def _peak(after: MemoryFact, before: MemoryFact | None) -> str:
    """The peak of a cell from counters that run since the start: exact if it set a new record, else a bound."""
    if after.peak_nbytes is None:
        return ""
    record = before is not None and before.peak_nbytes is not None and after.peak_nbytes > before.peak_nbytes
    return size(after.peak_nbytes) if record or before is None else f"at most {size(after.peak_nbytes)}"


def call_table(counts: Sequence[CountFact], here: int | None) -> Table:
    """What was called how often, from which line."""
    rows = tuple((fact.kind, fact.name, place_name(fact.place, here), count(fact.count)) for fact in counts[:ROW_COUNT])
    return Table(rows, ("call", "of", "where", "times"), _caption("Calls", len(counts)), (3,))


def loader_table(loaders: Iterable[LoaderFact], here: int | None) -> Table:
    """Data loaders that were iterated."""
    rows = tuple(
        (
            place_name(loader.place, here) or loader.kind,
            "" if loader.batch_size is None else count(loader.batch_size),
            count(loader.worker_count),
            "yes" if loader.pin_memory else "no",
            count(loader.batch_count),
            f"{loader.waited_s:.3g} s",
        )
        for loader in loaders
    )
    return Table(
        rows[:ROW_COUNT],
        ("loader", "batch size", "workers", "pinned", "batches", "waited"),
        _caption("Loaders", len(rows)),
        (1, 2, 4, 5),
    )


def place_name(place: Place, here: int | None) -> str:
    """A place as seen from the cell `here`: `line 3, in train`."""
    function = f"in {clip(place.function, _CELL_LIMIT)}" if place.function else ""
    return ", ".join(filter(None, (line_name(place.line, place.cell, here), function)))


def _caption(what: str, total: int, row_count: int = ROW_COUNT, *, complete: bool = True) -> str:
    number = count(total, complete=complete)
    if total > row_count:
        return f"{what} ({row_count} of {number})"
    return what if complete else f"{what} ({number})"


def _dtype(name: str) -> str:
    return name.removeprefix("torch.")


def _size(nbytes: int | None) -> str:
    return "" if nbytes is None else size(nbytes)


def _change(fact: MemoryFact, old: dict[str, int]) -> str:
    if fact.device not in old:
        return ""
    difference = fact.allocated_nbytes - old[fact.device]
    return f"+{size(difference)}" if difference > 0 else size(difference)


def _tensor_size(tensor: TensorFact) -> str:
    own, whole = size(tensor.nbytes), size(tensor.storage_nbytes)
    return own if tensor.storage_nbytes <= tensor.nbytes else f"{own} of {whole}"


def _history(tensor: TensorFact) -> str:
    return _BACKWARD.sub("", tensor.made_by) or ("leaf" if tensor.requires_grad else "")


def _graph_figures(graph: GraphFact) -> tuple[str, str]:
    saved = size(graph.saved_nbytes)
    return count(graph.node_count, complete=graph.complete), saved if graph.complete else f"at least {saved}"


def _mode(module: ModuleFact) -> str:
    own, other, layers = ("train", "eval", module.asleep) if module.training else ("eval", "train", module.awake)
    return f"{own}, {_layers(layers)} in {other}" if layers else own


def _layers(counts: LayerCounts) -> str:
    return clip(" + ".join(f"{count(number)} {kind}" for kind, number in counts[:3]), 80)


def _parameters(module: ModuleFact) -> str:
    if module.trainable_count == module.parameter_count:
        return count(module.parameter_count)
    return f"{count(module.parameter_count)} ({count(module.trainable_count)} trainable)"


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:g}"
