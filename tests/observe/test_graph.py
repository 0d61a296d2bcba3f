"""Bounded walks of autograd graphs."""

import weakref
from time import perf_counter

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from torch_inspector.observe import graph, private
from torch_inspector.observe.graph import CHAIN_LIMIT, GraphReader, chain_of

LATER = float("inf")


def walk(*tensors, reader=None, **options):
    return (reader or GraphReader()).walk([t.grad_fn for t in tensors], options.pop("deadline", LATER), **options)


def a_chain(length, start=None):
    weight = torch.ones((), requires_grad=True)
    total = torch.zeros(()) if start is None else start
    for _ in range(length):
        total = total + weight
    return total


def test_leaves_and_nodes():
    model, features = nn.Linear(3, 2), torch.ones(4, 3)
    seen = walk(model(features).sum())
    assert seen.leaf_keys == {id(model.weight), id(model.bias)}
    assert len(seen.nodes) == 5  # sum, addmm, transpose, two leaves
    assert seen.complete


def test_a_shared_node_is_read_once():
    shared = torch.ones(2, requires_grad=True) * 3
    assert len(walk(shared.sum() + shared.mean()).nodes) == 5


def test_saved_bytes_leave_out_leaves_and_what_is_held_anyway():
    weight, features = torch.ones(8, 8, requires_grad=True), torch.ones(8, 8)
    hidden = (features @ weight).tanh()
    seen = walk(hidden.sum())
    assert seen.saved_nbytes() == 2 * 256  # the features and the result of tanh
    assert seen.saved_nbytes({(private.storage_of(features) or (0, 0))[0]}) == 256


def test_backward_frees_what_is_saved():
    out = (torch.ones(8, requires_grad=True).exp()).sum()
    assert walk(out).live_count == 1
    out.backward()
    spent = walk(out)
    assert (spent.live_count, spent.saved_nbytes()) == (0, 0)
    assert spent.freed_count


def test_a_walk_stops_at_its_limit():
    seen = walk(a_chain(100), limit=10)
    assert len(seen.nodes) == 10
    assert not seen.complete


def test_a_walk_stops_when_time_is_up():
    seen = walk(a_chain(500), deadline=perf_counter() - 1)
    assert len(seen.nodes) < 100
    assert not seen.complete


def test_nothing_is_read_far_below_the_root(monkeypatch):
    monkeypatch.setattr(private, "deep_walk_limit", lambda: 50)
    seen = walk(a_chain(500))
    assert len(seen.nodes) <= 55
    assert not seen.complete


def test_no_roots_give_an_empty_walk():
    seen = GraphReader().walk([], LATER)
    assert (len(seen.nodes), seen.complete, seen.saved_nbytes()) == (0, True, 0)


def test_nothing_is_read_while_another_thread_is_in_backward(monkeypatch):
    monkeypatch.setattr(private, "backward_elsewhere", lambda: True)
    assert walk(a_chain(3)) is None


def test_no_hook_runs_and_no_checkpoint_is_recomputed():
    calls, unpacked = [], []

    def unpack(kept):
        unpacked.append(1)
        return kept[0]

    def layer(value):
        calls.append(1)
        return value.exp().sin()

    with torch.autograd.graph.saved_tensors_hooks(lambda value: (value,), unpack):
        packed = torch.ones(3, requires_grad=True).exp()
    out = checkpoint(layer, packed, use_reentrant=False)
    seen = walk(out.sum())
    assert seen.live_count >= 2
    assert (len(calls), unpacked) == (1, [])


class Mark:
    """Put on a node, it dies with the graph."""


def test_a_reader_keeps_nothing_alive():
    reader, out, mark = GraphReader(), a_chain(20), Mark()
    out.grad_fn.metadata["mark"] = mark
    gone = weakref.ref(mark)
    walk(out, reader=reader)
    del out, mark
    assert gone() is None


def sum_length(node):
    return chain_of(node).length


@pytest.mark.parametrize(
    ("make", "length"),
    [
        (lambda: a_chain(40), 40),
        (lambda: sum([torch.ones((), requires_grad=True) * 2 for _ in range(7)]), 7),
        (lambda: torch.ones((), requires_grad=True) * 2, 0),
        (lambda: torch.ones(3, requires_grad=True).sum(), 0),
    ],
)
def test_length_of_a_sum(make, length):
    assert sum_length(make().grad_fn) == length


def test_length_of_an_inplace_sum():
    weight, total = torch.ones((), requires_grad=True), torch.zeros(())
    for _ in range(12):
        total += weight * 2
    assert sum_length(total.grad_fn) == 12


def test_a_very_long_sum_is_cut():
    assert sum_length(a_chain(5_000).grad_fn) == graph.NODE_LIMIT


def test_length_of_a_sum_written_the_other_way():
    weight, total = torch.ones((), requires_grad=True), torch.zeros(())
    for _ in range(12):
        total = weight * 2 + total
    assert sum_length(total.grad_fn) == 12


# how much of one graph that lives from cell to cell is touched -----------------


def test_graphs_of_their_own_are_not_added_up():
    reader = GraphReader()
    for _ in range(50):
        walk(a_chain(100), reader=reader)
    assert reader.chained == 0


def test_a_graph_that_grows_is_given_up_before_it_is_dangerous():
    reader, total = GraphReader(), None
    for _ in range(60):
        total = a_chain(500, total)
        walk(total, reader=reader)
    assert reader.chained <= CHAIN_LIMIT + 1_000
    assert walk(total, reader=reader) is None


@pytest.mark.xfail(reason="graph.py:96 a walk cut at its limit never meets nodes read before, so nothing is added up")
def test_a_graph_that_grows_fast_is_given_up_too():
    reader, total, read = GraphReader(), None, 0
    for _ in range(12):
        total = a_chain(2_500, total)
        seen = walk(total, reader=reader)
        read += len(seen.numbers) if seen is not None else 0
    assert read <= CHAIN_LIMIT + graph.NODE_LIMIT


@pytest.mark.xfail(reason="graph.py:62 once over CHAIN_LIMIT, no graph is read any more for the rest of the session")
def test_after_a_long_graph_has_gone_new_ones_are_read_again():
    reader, total = GraphReader(), None
    for _ in range(60):
        total = a_chain(500, total)
        walk(total, reader=reader)
    del total
    assert walk(a_chain(5), reader=reader) is not None
