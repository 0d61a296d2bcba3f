"""Values that went wrong: losses, gradients and weights that are not finite, and results that float16 cannot hold.

Only what lies on the CPU is read, and only a bounded number of elements, at the steps that are looked at anyway and
once at the end of a cell. Nothing here waits for a device.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from time import thread_time
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import ExtremeFact, LossFact, OperationFact, SeriesFact, SpoiledFact
from torch_inspector.observe import as_torch, kinds, layers, origins
from torch_inspector.observe.divisors import is_zero_where_spoiled
from torch_inspector.observe.groups import parameters_of
from torch_inspector.observe.in_memory import is_in_memory
from torch_inspector.observe.locals import locals_of, names_in
from torch_inspector.observe.nonfinite_weights import NonfiniteWeights
from torch_inspector.observe.reach import gradients_readable, is_leaf
from torch_inspector.observe.versions import version_of

if TYPE_CHECKING:
    from torch_inspector.facts import Place
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.namespace import Names
    from torch_inspector.observe.recorder import Recorder

# Losses that are noted in one cell.
_LOSSES = 64
# Elements read in one look, and tensors among them, the smallest first: what is not finite spreads to all of them.
_ELEMENTS, _TENSORS = 300_000, 64
# Calls from a line of which gradients are read: the first ones; of those that are looked at later, the first in a row.
_GRADIENTS = 4
# For the graph of the one loss that is not finite first.
_GRAPH_S = 0.02
# Operations that give rows of a table as they are.
_TAKES = frozenset(["embedding", "index", "select", "slice", "index_select", "indexselect", "gather"])
# Variables of the user that are named as the origin.
_NAMES = 8
# Entries of one list of numbers that are read, and lists that are asked for their last entry.
_ENTRIES, _LISTS = 4_096, 200

_Tensors = Iterable[tuple[int, Any]]


class ValueWatch:
    """Records one cell's losses and gradients between `open` and `trace`."""

    def __init__(self, ledger: Ledger, reader: GraphReader | None = None) -> None:
        self._ledger = ledger
        self._reader = reader
        self.losses: list[LossFact] = []
        self._trained = False
        self._new_halves: dict[tuple[str, int], int] = {}
        self._nonfinite = NonfiniteWeights(spoiled)

    def open(self) -> None:
        """Begins to record a cell."""
        self.losses = []
        self._trained = False

    def note_reached(self, root: Any, reached: frozenset[int]) -> None:
        """Notes what the graph of a loss is known to reach: with what, it is finite."""
        value = number_of(root)
        if value is not None and math.isfinite(value):
            self._nonfinite.note_finite([(key, one) for key, one in self._parameters() if key in reached])

    def before(self, recorder: Recorder, place: Place, index: int, root: Any, frame: FrameType) -> None:
        """Notes the value of a loss that `backward` is about to be called on."""
        self._trained = True
        value = number_of(root)
        if value is None or len(self.losses) >= _LOSSES:
            return
        fact = LossFact(recorder.next_order(), place, index, value)
        if not self.losses:
            fact = fact._replace(largest_weight=_largest(self._parameters()))
        if not math.isfinite(value) and all(math.isfinite(one.value) for one in self.losses):
            around = _origins(recorder, frame)
            # Of numbers that are NaN, no loss becomes infinite.
            around = around if math.isnan(value) else tuple(one for one in around if one.infinite_count)
            fact = self._explained(fact._replace(origins=around), root)
        self.losses.append(fact)

    def _explained(self, fact: LossFact, root: Any) -> LossFact:
        """A loss that is not finite with the weights that were not before it, or with the operation to blame."""
        nan = math.isnan(fact.value)
        spoiled = [one for one in self._spoiled(self._parameters(), finite=False) if nan or one.inf_count]
        if any(not one.unread for one in spoiled):
            return fact._replace(spoiled_weights=tuple(spoiled))
        fact = fact._replace(largest_weight=_largest(self._parameters()))
        if not all(one.computed or one.only_masks for one in fact.origins):
            return fact
        origin = self._origin(root, infinite=not nan)
        fact = fact._replace(operation=origin.operation, given=origin.given)
        # Numbers that no loss has read so far explain one that is NaN, unless something else does.
        if not nan or (origin.operation is not None and origin.operation.name not in _TAKES):
            return fact
        self._nonfinite.note_read(one.key for one in spoiled)
        return fact._replace(spoiled_weights=tuple(one._replace(unread=False) for one in spoiled))

    def puzzled(self) -> bool:
        """True if the latest loss is the first that is not finite, and nothing that was given explains it."""
        bad = [one for one in self.losses if not math.isfinite(one.value)]
        if not bad or bad[0] is not self.losses[-1] or bad[0].spoiled_weights:
            return False
        return all(one.computed or one.only_masks for one in bad[0].origins)

    def learn(self, operation: OperationFact | None) -> None:
        """Notes what a second look has found of the latest loss."""
        if operation is not None:
            self.losses[-1] = self.losses[-1]._replace(operation=operation)

    def _origin(self, root: Any, *, infinite: bool) -> origins.Origin:
        """Where a loss became not finite, from what its graph has saved."""
        reader, node = self._reader, as_torch.grad_fn(root)
        walk = reader.walk([node], thread_time() + _GRAPH_S) if reader is not None and node is not None else None
        return origins.origin(walk, infinite=infinite) if walk is not None else origins.Origin(None)

    def after(self, place: Place, index: int) -> None:
        """Notes gradients that are not finite, or all zero, after that call."""
        last = self.losses[-1] if self.losses else None
        if last is None or (last.place, last.index) != (place, index) or not math.isfinite(last.value):
            return
        if not self.reads_gradients(place, index) or not gradients_readable():
            return
        own = ((id(p), as_torch.grad(p)) for _, p in self._parameters() if is_leaf(p))
        pairs = [(key, gradient) for key, gradient in own if gradient is not None]
        bad = tuple(spoiled(pairs))
        readable = _readable(pairs) if not bad else []
        zeros = len(readable) if not any(bool(gradient.any()) for _, gradient in readable) else 0
        self.losses[-1] = last._replace(spoiled_gradients=bad, zero_gradients=zeros, gradient_count=len(pairs))

    def reads_gradients(self, place: Place, index: int) -> bool:
        """True for the first calls of a line, and the first in a row of others, until some gradient is not finite."""
        follows = any((one.place, one.index) == (place, index - 1) for one in self.losses[-3:])
        return (index <= _GRADIENTS or not follows) and not any(one.spoiled_gradients for one in self.losses)

    def _parameters(self) -> list[tuple[int, Any]]:
        optimizers = [record.ref() for record in self._ledger.live()]
        groups = [group for one in optimizers if one is not None for group in parameters_of(one)]
        return [(id(p), p) for group in groups for p in group]

    def _spoiled(self, tensors: list[tuple[int, Any]], *, finite: bool) -> tuple[SpoiledFact, ...]:
        """Weights that are not finite, and whether their optimizers have divided 0 by something there."""
        found = tuple(self._nonfinite.found(tensors, finite=finite, stepped=self._trained))
        by_key = dict(tensors)
        alive = [one for record in self._ledger.live() if found and (one := record.ref()) is not None]
        zero = {one.key for one in found if any(is_zero_where_spoiled(opt, by_key[one.key]) for opt in alive)}
        return tuple(one._replace(without_gradient=one.key in zero) for one in found)

    # the end of a cell --------------------------------------------------------

    def spoiled_weights(self, names: Names, called: frozenset[int], key_of: Any) -> tuple[SpoiledFact, ...]:
        """Weights that are not finite now, of optimizers that stepped and modules that were called in the cell."""
        if not called and not self._trained:
            return ()
        found = dict(self._parameters()) if self._trained else {}
        for _, module in names.modules:
            if key_of(module) in called:
                found.update((id(p), p) for _, p in layers.walk_parameters(module))
        return self._spoiled(list(found.items()), finite=all(math.isfinite(loss.value) for loss in self.losses))

    def halves(self, names: Names) -> tuple[ExtremeFact, ...]:
        """Variables in float16 that are new and hold infinities or NaN."""
        halves = [(path, one) for path, one in names.tensors if as_torch.dtype(one) == torch.float16]
        known, self._new_halves = self._new_halves, {(path, id(one)): version_of(one) for path, one in halves}
        fresh = [(path, one) for path, one in halves if known.get((path, id(one))) != version_of(one)]
        return extremes_of(fresh)

    def series(self, names: Mapping[str, Any], code: str) -> tuple[SeriesFact, ...]:
        """Lists of numbers of the user which end in NaN or infinity, or grow; read after cells that train."""
        if not self._trained:
            return ()
        found = (_series(path, value) for path, value in _lists_of(names, code))
        return tuple(fact for fact in found if fact is not None)


def number_of(root: Any) -> float | None:
    """The value of a single number on the CPU; None for anything else."""
    if type(root) is not torch.Tensor or root.numel() != 1 or not root.is_floating_point():
        return None
    if not is_in_memory(root):
        return None
    return float(as_torch.detach(root))


def spoiled(tensors: _Tensors) -> Iterator[SpoiledFact]:
    """Those of some tensors that hold NaN or infinity."""
    for key, tensor in _readable(tensors):
        if not math.isfinite(as_torch.item(tensor.sum())):
            nan, low, high = (int(bad.sum()) for bad in (tensor.isnan(), tensor.isneginf(), tensor.isposinf()))
            if nan or low or high:
                yield SpoiledFact(key, nan, low + high, tensor.numel(), high)


def _largest(tensors: _Tensors) -> float:
    """The number farthest from zero in some tensors."""
    return max((float(tensor.abs().max()) for _, tensor in _readable(tensors)), default=0.0)


def _readable(tensors: _Tensors) -> list[tuple[int, torch.Tensor]]:
    """Plain floating-point tensors on the CPU, the smallest first, as many as may be read."""
    plain = [(key, tensor) for key, tensor in tensors if _is_plain(tensor)]
    plain.sort(key=lambda pair: pair[1].numel())
    chosen, left = [], _ELEMENTS
    for key, tensor in plain[:_TENSORS]:
        left -= tensor.numel()
        if left < 0:
            break
        chosen.append((key, as_torch.detach(tensor)))
    return chosen


def _is_plain(tensor: Any) -> bool:
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
        return False
    return tensor.is_floating_point() and tensor.numel() > 0 and is_in_memory(tensor)


def _origins(recorder: Recorder, frame: FrameType) -> tuple[ExtremeFact, ...]:
    """Variables of the code that calls `backward` which are not finite, or hold only finite numbers."""
    user = recorder.places.user_frame(frame)
    if user is None:
        return ()
    file = recorder.places.file_of(user)
    names = names_in(user.f_code, file.code if file is not None else "")
    with locals_of(user) as values:
        known = [(name, values[name]) for name in names if name in values]
        facts = extremes_of([(name, value) for name, value in known if type(value) is torch.Tensor])
    return facts[:_NAMES]


def extremes_of(tensors: list[tuple[str, Any]]) -> tuple[ExtremeFact, ...]:
    """Those of some variables that are not finite everywhere."""
    return tuple(one for one in _extreme_facts(tensors) if one.infinite_count or one.nan_count)


def _extreme_facts(tensors: list[tuple[str, Any]]) -> list[ExtremeFact]:
    paths = {id(tensor): (path, as_torch.requires_grad(tensor)) for path, tensor in reversed(tensors)}
    return [_extreme_fact(*paths[key], tensor) for key, tensor in _readable([(id(one), one) for _, one in tensors])]


def _extreme_fact(path: str, computed: bool, tensor: torch.Tensor) -> ExtremeFact:
    finite = math.isfinite(as_torch.item(tensor.sum()))
    low = None if finite else tensor == -math.inf
    return ExtremeFact(
        path=path,
        dtype=str(tensor.dtype).removeprefix("torch."),
        count=tensor.numel(),
        inf_count=0 if finite else int((tensor == math.inf).sum()),
        negative_inf_count=0 if low is None else int(low.sum()),
        nan_count=0 if finite else int(tensor.isnan().sum()),
        computed=computed,
        low_rows=0 if low is None or tensor.shape[-1:] < (2,) else int(low.all(-1).sum()),
    )


def _lists_of(names: Mapping[str, Any], code: str) -> Iterator[tuple[str, list[Any]]]:
    """Lists of numbers in variables, in dictionaries, and in attributes of the user's own objects."""
    words = _words(code)
    for name, value in [pair for pair in dict(names).items() if type(pair[0]) is str and pair[0] in words][:_LISTS]:
        if type(value) is list:
            yield name, value
        elif type(value) is dict:
            yield from ((f"{name}[{key!r}]", one) for key, one in list(value.items())[:_NAMES] if _is_list(key, one))
        elif kinds.module_of(type(value)) == "__main__":
            fields = list(kinds.fields_of(value).items())[:_LISTS]
            yield from ((f"{name}.{key}", one) for key, one in fields if _is_list(key, one))


@lru_cache(maxsize=8)
def _words(code: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d]\w*", code))


def _is_list(key: Any, value: Any) -> bool:
    return type(key) is str and type(value) is list


def _series(path: str, values: list[Any]) -> SeriesFact | None:
    some = values[-_ENTRIES:]
    if len(some) <= 1 or type(some[-1]) is not float or type(some[0]) is not float:
        return None
    numbers = [value for value in some if type(value) is float]
    if len(numbers) != len(some):
        return None
    bad = next((i for i, value in enumerate(numbers) if not math.isfinite(value)), None)
    finite = numbers if bad is None else numbers[:bad]
    return SeriesFact(
        path=path,
        count=len(values),
        first_bad=None if bad is None or math.isfinite(numbers[-1]) else bad + len(values) - len(some),
        first=finite[0] if finite else None,
        last=finite[-1] if finite else None,
        lowest=min(finite, default=None),
        bad="" if bad is None else str(numbers[bad]),
    )
