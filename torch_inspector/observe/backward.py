"""Watches `backward()` and `torch.autograd.grad()`: the graph behind the first calls from a line, then only counts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import thread_time
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from torch_inspector.facts import BackwardFact
from torch_inspector.observe import as_torch, kinds, private, replay, witness
from torch_inspector.observe.precision import autocast_at
from torch_inspector.observe.values import ValueWatch
from torch_inspector.observe.wrapper import Patch, unframe

if TYPE_CHECKING:
    from torch_inspector.observe.attention import Attention
    from torch_inspector.observe.forwards import ForwardWatch
    from torch_inspector.observe.graph import GraphReader
    from torch_inspector.observe.ledger import Ledger
    from torch_inspector.observe.optimizer_record import OptimizerRecord
    from torch_inspector.observe.recorder import Recorder, Site
    from torch_inspector.observe.unheld import UnheldWatch

# Backward calls of one line whose graph is read; fewer where an optimizer steps after each.
_FIRST_GRAPHS, _FIRST_STEPPED = 3, 2
# Of calls that are only counted, one in seven or eight (a mask of bits) is marked: steps look longer, never shorter.
_UNMARKED = 7
_Given = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments of a call as given."""

_is_compiling = torch.compiler.is_dynamo_compiling
_getframe = sys._getframe
_get_ident = threading.get_ident
_TENSOR_BACKWARD = torch.Tensor.backward.__code__


class BackwardWatch:
    """Records one cell's backward calls between `open` and `close`."""

    def __init__(
        self,
        attention: Attention,
        ledger: Ledger,
        reader: GraphReader,
        forwards: ForwardWatch,
        unheld: UnheldWatch,
    ) -> None:
        self.values = ValueWatch(ledger, reader)
        """Values of losses and gradients of the cell."""
        self._attention = attention
        self._ledger = ledger
        self._reader = reader
        self._forwards = forwards
        self._unheld = unheld
        self._recorder: Recorder | None = None
        self._quiet: dict[tuple[int, int], Site] = {}
        self.facts: list[BackwardFact] = []
        self.patches = (
            Patch(torch.autograd, "backward", self._wrap_backward),
            Patch(torch.autograd, "grad", self._wrap_grad),
        )

    def open(self, recorder: Recorder) -> None:
        """Begins to record a cell."""
        self._recorder, self.facts = recorder, []
        self._quiet.clear()
        self.values.open()

    def close(self) -> None:
        """Records no more; the facts stay until the next cell."""
        self._recorder = None

    def _wrap_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        attention = self._attention

        def backward(*args: Any, **kwargs: Any) -> Any:
            if _is_compiling():
                return original(*args, **kwargs)
            site, looked = attention.latest_backward, None
            if site.count < site.ask_at:
                site.count += 1
            elif attention.watching:
                looked = self._look_closer((args, kwargs))
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise
            if looked is not None:
                self._end(*looked)
            return result

        return backward

    def _look_closer(self, given: _Given) -> tuple[Site, int] | None:
        """A call that is not only counted; gives its site and trail if its end matters."""
        attention = self._attention
        if _get_ident() != attention.thread:
            attention.in_other_thread()
            return None
        frame = _getframe(2)
        # Past `Tensor.backward`.
        outer = frame.f_back or frame
        site = None if attention.busy else self._quiet.get((id(outer.f_code), outer.f_lasti))
        if site is None:
            self._reader.mark()
            return self._begin(given, frame)
        attention.latest_backward = site
        site.count += 1
        self._mark(site, given, outer)
        return None

    def _mark(self, site: Site, given: _Given, frame: FrameType) -> None:
        """Marks some calls; where a graph grew from call to call, looks whether it goes on to."""
        later = not site.growing and site.ask_later()
        if not later and site.count & _UNMARKED:
            return
        self._reader.mark()
        if self._recorder is not None and _is_due(site):
            self._look(self._recorder, site, given, frame)

    def _wrap_grad(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def grad(*args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            if recorder is not None and not _is_compiling() and _get_ident() == recorder.thread:
                site = recorder.site("grad", _getframe(1))
                if site.count <= _FIRST_GRAPHS or self._forwards.waiting():
                    self._look(recorder, site, (args, kwargs), _getframe(1))
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                unframe(error)
                raise

        return grad

    def _begin(self, given: _Given, frame: FrameType) -> tuple[Site, int] | None:
        """Counts the call, and looks at it; gives its site and trail if its end matters."""
        recorder, attention = self._recorder, self._attention
        if recorder is None or torch.compiler.is_compiling():
            return None
        outer = frame.f_back or frame
        frame = outer if frame.f_code is _TENSOR_BACKWARD else frame
        site = recorder.site("backward", frame)
        if site.count == 1:
            attention.again()
            self._note_lines(recorder)
            self._forwards.look_anew()
        if site.count >= _FIRST_GRAPHS:
            self._quiet[id(outer.f_code), outer.f_lasti] = site
        seen = self._wants_graph(site) and self._look(recorder, site, given, frame)
        trail = recorder.places.trail(frame) if attention.looking else 0
        with recorder.failures.guard("backward"), private.unseen():
            for root in witness.roots_of(*given)[:1]:
                if seen and site.count == 1:
                    self.values.note_reached(root, self.facts[-1].leaf_keys)
                self.values.before(recorder, site.place, site.count, root, frame)
            for record in self._ledger.live():
                record.leaves_complete &= bool(seen)
                if attention.looking:
                    record.begin_backward(trail)
        if recorder.wants_report and self.values.puzzled():
            # Not unseen: it sees the operations of a copy of its own.
            with recorder.failures.guard("replay"):
                self.values.learn(replay.second_look(frame, recorder.places, self._forwards.resting))
        return site, trail

    def _note_lines(self, recorder: Recorder) -> None:
        """Notes whether there is only one line that calls `backward`."""
        sites = [site for site in recorder.sites.values() if site.kind == "backward"]
        for site in sites:
            site.note_lines(len(sites))

    def _wants_graph(self, site: Site) -> bool:
        """True for the first calls from a line, and where somebody waits for the answer."""
        if self._attention.graphs_wanted > 0:
            self._attention.graphs_wanted -= 1
            return True
        first = _FIRST_GRAPHS if self._attention.step_count < _FIRST_STEPPED else _FIRST_STEPPED
        steep = site.steep and self._attention.looking and self.values.reads_gradients(site.place, site.count)
        return site.count <= first or steep or self._forwards.waiting() or _is_due(site)

    def _end(self, site: Site, trail: int) -> None:
        recorder, attention = self._recorder, self._attention
        if recorder is None:
            return
        with recorder.failures.guard("backward"), private.unseen():
            for record in self._ledger.live() if attention.looking else ():
                record.end_backward(site.place, trail)
            if attention.looking:
                self.values.after(site.place, site.count)
        attention.after_backward()

    def _look(self, recorder: Recorder, site: Site, given: _Given, frame: FrameType) -> bool:
        """Reads the graph behind a call; True if it was seen whole."""
        if not recorder.budget.open():
            return False
        begun, seen = thread_time(), None
        with recorder.failures.guard("witness"), private.unseen():
            roots = witness.roots_of(*given)
            held = self._ledger.held_keys() if roots else frozenset[int]()
            seen = witness.look(roots, self._reader, recorder, frame, held) if roots else None
            if seen is not None:
                self._note(recorder, site, seen, roots[0], given)
            elif not roots and site.kind == "backward":
                self._note_leaf(recorder, site, given, frame)
        recorder.budget.charge(begun)
        return seen is not None and seen.fact.complete

    def _note_leaf(self, recorder: Recorder, site: Site, given: _Given, frame: FrameType) -> None:
        """Notes a call on a tensor without history, which reaches nothing but that tensor."""
        root: Any = given[0][0] if given[0] else given[1].get("tensors")
        root = root[0] if kinds.is_one_of(root, (tuple, list)) and len(root) == 1 else root
        if _is_leaf_root(root) and site.count <= _FIRST_GRAPHS:
            name, made_at = witness.name_of(root, recorder, frame)
            place, shape = site.place, tuple(root.shape)
            order = recorder.next_order()
            fact = BackwardFact(order, place, site.count, name, made_at or place, shape, False, False, None)
            self.facts.append(fact._replace(from_leaf=True))

    def _note(self, recorder: Recorder, site: Site, seen: witness.Seen, root: torch.Tensor, given: _Given) -> None:
        fact = BackwardFact(
            order=recorder.next_order(),
            place=site.place,
            index=site.count,
            root=seen.root,
            made_at=seen.made_at or site.place,
            shape=seen.shape,
            retain_graph=_retains(*given),
            is_grad_call=site.kind == "grad",
            witness=seen.fact,
            autocast=autocast_at(root),
            device=as_torch.device(root).type,
            stale=tuple(record.key for record in self._ledger.live() if _has_stepped(record, seen.uses)),
            number=seen.number,
            plain_inputs=site.kind == "grad" and _asks_plainly(given, self._ledger.held_keys()),
            weighed=site.kind == "backward" and _is_weighed(*given),
        )
        self.facts.append(fact)
        site.growing, site.steep = _grown(site, fact), bool(seen.fact.steep)
        self._forwards.note_reached(seen.numbers, complete=seen.fact.complete)
        if not fact.is_grad_call:
            self._unheld.note(seen.unheld, seen.bare)
            for record in self._ledger.live():
                record.leaf_keys |= seen.fact.leaf_keys


def _has_stepped(record: OptimizerRecord, uses: dict[int, int]) -> bool:
    """True if an optimizer has stepped since a graph was made, as far as it was made of what the optimizer holds."""
    used = [uses[key] for key in uses.keys() & record.keys()]
    return bool(used) and record.stepped_number > max(used)


def _is_leaf_root(thing: Any) -> bool:
    """True for a tensor made by the user, not computed, that wants a gradient; parameters may be asked for theirs."""
    return (
        kinds.is_a(thing, torch.Tensor) and not kinds.is_a(thing, torch.nn.Parameter) and as_torch.requires_grad(thing)
    )


def _is_due(site: Site) -> bool:
    """True at the calls 8, 16, 32, … from a line whose graph has grown so far."""
    return site.growing > 0 and site.count > _UNMARKED and not site.count & (site.count - 1)


def _grown(site: Site, fact: BackwardFact) -> int:
    """Nodes of a kept graph, if it is the first from its line or larger than all before; 0 otherwise."""
    kept = fact.retain_graph and fact.witness is not None and fact.witness.complete
    nodes = fact.witness.node_count if kept and fact.witness is not None else 0
    return nodes if fact.index == 1 or 0 < site.growing < nodes else 0


def _asks_plainly(given: _Given, held: frozenset[int]) -> bool:
    """True if `grad` is to give numbers without history, of tensors that no optimizer holds."""
    args, kwargs = given
    kept = args[4] if len(args) > 4 else kwargs.get("create_graph", False)  # noqa: PLR2004
    asked: Any = args[1] if len(args) > 1 else kwargs.get("inputs")
    inputs = asked if kinds.is_one_of(asked, (tuple, list)) else (asked,)
    return kept is False and all(kinds.is_a(one, torch.Tensor) and id(one) not in held for one in inputs)


def _is_weighed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if a call of `backward` begins with a gradient; `Tensor.backward` hands it on as the second argument."""
    begin = args[1] if len(args) > 1 else kwargs.get("grad_tensors", kwargs.get("grad_variables"))
    return begin is not None


def _retains(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if a call of `backward` asks to keep the graph; `Tensor.backward` hands it on as the third argument."""
    return (args[2] if len(args) > 2 else kwargs.get("retain_graph")) is True  # noqa: PLR2004
