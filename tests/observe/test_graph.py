"""Bounded walks of autograd graphs."""

import weakref
from time import thread_time

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from torch_inspector.observe import graph, others, private, saved
from torch_inspector.observe.graph import CHAIN_LIMIT, GraphReader, chain_of, pass_count

LATER = float("inf")


@pytest.fixture(autouse=True)
def _watched():
    """As in a notebook: up to torch 2.9 graphs that nobody saw being made are left unread."""
    saved.hooked.install()
    yield
    saved.hooked.remove()


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
    seen = walk(a_chain(500), deadline=thread_time() - 1)
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


def test_nothing_is_read_while_another_thread_may_train(monkeypatch):
    monkeypatch.setattr(others, "may_train", lambda: True)
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
    assert seen.live_count >= 2 or not saved.shows_itself
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
    assert sum_length(a_chain(5_000).grad_fn) == graph.LINKS


def test_length_of_a_sum_written_the_other_way():
    weight, total = torch.ones((), requires_grad=True), torch.zeros(())
    for _ in range(12):
        total = weight * 2 + total
    assert sum_length(total.grad_fn) == 12


def test_length_of_a_moving_average():
    weight, smooth = torch.ones((), requires_grad=True), torch.zeros(())
    for _ in range(12):
        smooth = 0.9 * smooth + 0.1 * (weight * weight)
    assert sum_length(smooth.grad_fn) == 12


def test_a_single_number_that_is_kept_does_not_make_a_graph_live():
    loss = torch.ones(8, requires_grad=True).exp().sum()
    loss.backward()
    assert walk(loss * torch.tensor(0.5)).live_count == 0


# forward passes and training steps ---------------------------------------------


def a_model():
    return nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))


def passes(*tensors, **options):
    return pass_count(walk(*tensors, **options), [t.grad_fn._sequence_nr() for t in tensors])


def test_passes_that_share_no_node():
    model = a_model()
    assert passes(*[model(torch.ones(4, 3)).sum() for _ in range(5)]) == 5


def test_states_of_one_pass_are_one():
    hidden, states, cell = torch.zeros(2, 3), [], nn.RNNCell(3, 3)
    for _ in range(5):
        hidden = cell(torch.ones(2, 3), hidden)
        states.append(hidden.sum())
    assert passes(*states) == 1


def test_passes_of_a_walk_that_ended_early():
    model = a_model()
    assert passes(*[model(torch.ones(4, 3)).sum() for _ in range(8)], limit=24) in range(6, 9)


def test_passes_behind_a_total():
    model, total = a_model(), torch.zeros(())
    for _ in range(5):
        total = total + model(torch.ones(4, 3)).sum()
    chain = chain_of(total.grad_fn)
    assert pass_count(walk(total), chain.parts, chain.links) == 5


def test_passes_behind_a_joined_tensor():
    model = a_model()
    joined = torch.cat([model(torch.ones(4, 3)) for _ in range(5)])
    chain = chain_of(joined.grad_fn)
    assert pass_count(walk(joined), chain.parts, chain.links) == 5


def test_steps_are_told_apart_by_backward_calls():
    reader, weight, losses = GraphReader(), torch.ones((), requires_grad=True), []
    for _ in range(4):
        losses.append(weight * 2)
        reader.mark()
    numbers = [loss.grad_fn._sequence_nr() for loss in losses]
    assert reader.steps(numbers) == 4
    assert reader.steps(numbers[1:2]) == 1


def test_marks_are_limited():
    reader = GraphReader()
    for _ in range(3 * graph._MARKS):
        reader.mark()
    assert len(reader.marks) <= graph._MARKS


# how much of one graph that lives from cell to cell is touched -----------------


def test_graphs_of_their_own_are_not_added_up():
    reader = GraphReader()
    for _ in range(50):
        walk(a_chain(100), reader=reader)
    assert reader.alive() == 0


def test_a_graph_that_grows_is_given_up_before_it_is_dangerous():
    reader, total = GraphReader(), None
    for _ in range(60):
        total = a_chain(500, total)
        walk(total, reader=reader)
    assert reader.alive() <= CHAIN_LIMIT + 1_000
    assert walk(total, reader=reader) is None


def test_a_graph_that_grows_fast_is_given_up_too():
    reader, total, read = GraphReader(), None, 0
    for _ in range(12):
        total = a_chain(2_500, total)
        seen = walk(total, reader=reader)
        read += len(seen.numbers) if seen is not None else 0
    assert read <= CHAIN_LIMIT + graph.NODE_LIMIT


def test_after_a_long_graph_has_gone_new_ones_are_read_again():
    reader, total = GraphReader(), None
    for _ in range(60):
        total = a_chain(500, total)
        walk(total, reader=reader)
    del total
    assert walk(a_chain(5), reader=reader) is not None
