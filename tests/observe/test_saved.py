"""What nodes keep for backward is read, and nothing of the user's runs; on every torch."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from torch_inspector.observe import saved
from torch_inspector.observe.private import sequence_number


@pytest.fixture(autouse=True)
def _watched():
    saved.hooked.install()
    yield
    saved.hooked.remove()


def values(node):
    return [value for value, _ in saved.saved_values(node)]


def test_saved_tensors_run_no_hook():
    unpacked = []

    def unpack(value):
        unpacked.append(value)
        return value

    weight = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda value: value, unpack):
        out = (weight * weight).exp()
    assert [type(one) for one in values(out.grad_fn)] == [torch.Tensor] * saved.shows_itself
    assert unpacked == []
    assert values((weight * weight).exp().grad_fn)


def test_saved_tensors_recompute_no_checkpoint():
    calls = []

    def layer(value):
        calls.append(1)
        return value.exp().sin()

    out = checkpoint(layer, torch.ones(3, requires_grad=True), use_reentrant=False)
    node = out.grad_fn
    assert bool(values(node)) == saved.shows_itself
    assert len(calls) == 1


def test_freed_values_of_a_custom_function_are_nothing():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            ctx.save_for_backward(value)
            return value * 2

        @staticmethod
        def backward(ctx, grad):
            (_,) = ctx.saved_tensors
            return grad * 2

    out = Double.apply(torch.ones(2, requires_grad=True))
    assert [one is None for one in values(out.grad_fn)] == [False]
    out.sum().backward()
    assert [one is None for one in values(out.grad_fn)] == [True]


def test_lists_of_saved_tensors_are_seen_one_by_one():
    out = torch.ones(2, 3, requires_grad=True)[torch.tensor([0]), torch.tensor([1])]
    assert [one.tolist() for one in values(out.grad_fn)] == [[0], [1]]


def test_hooks_that_were_refused_hide_nothing():
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        torch.autograd.graph.saved_tensors_hooks(lambda value: value, lambda value: value).__enter__()
    weight = torch.ones(3, requires_grad=True)
    assert values((weight * weight).grad_fn)


@pytest.mark.skipif(saved.shows_itself, reason="this torch shows what was saved: nothing is unpacked")
def test_what_is_changed_in_place_is_not_taken_for_freed():
    base = torch.ones(3, requires_grad=True) * 1
    out = base * base
    base.add_(1)
    assert values(out.grad_fn) == []
    assert saved.saved_value(out.grad_fn, "self") is None


def test_one_value_by_name():
    weight = torch.ones(3, requires_grad=True)
    out = weight * torch.full((3,), 7.0)
    assert saved.saved_value(out.grad_fn, "other").tolist() == [7.0] * 3
    assert saved.saved_value(out.grad_fn, "nothing") is None
    out.sum().backward()
    assert saved.saved_value(out.grad_fn, "other") is None


def watching():
    """Blocks that are told by hand what happens."""
    blocks = saved.HookedBlocks()
    blocks.patches = ()
    blocks.install()
    return blocks


class TestHookedBlocks:
    def test_nodes_made_under_hooks_are_known_by_number(self):
        blocks = watching()
        weight = torch.ones(3, requires_grad=True)
        before = weight.exp().grad_fn._sequence_nr()
        blocks.begin()
        inside = weight.exp()
        assert blocks.may_have_made(sequence_number())
        blocks.end()
        outside = weight.exp()
        assert not blocks.may_have_made(before)
        assert blocks.may_have_made(inside.grad_fn._sequence_nr())
        assert not blocks.may_have_made(outside.grad_fn._sequence_nr())

    def test_blocks_in_blocks(self):
        blocks = watching()
        weight = torch.ones(3, requires_grad=True)
        blocks.begin()
        first = weight.exp()
        blocks.begin()
        second = weight.exp()
        blocks.end()
        third = weight.exp()
        blocks.end()
        fourth = weight.exp()
        numbers = [one.grad_fn._sequence_nr() for one in (first, second, third, fourth)]
        assert [blocks.may_have_made(number) for number in numbers] == [True, True, True, False]

    def test_forgotten_blocks_leave_their_nodes_unread(self, monkeypatch):
        monkeypatch.setattr(saved, "_BLOCKS", 4)
        blocks = watching()
        weight, made, free = torch.ones(3, requires_grad=True), [], []
        for _ in range(12):
            blocks.begin()
            made.append(weight.exp().grad_fn._sequence_nr())
            blocks.end()
            free.append(weight.exp().grad_fn._sequence_nr())
        assert all(blocks.may_have_made(number) for number in made)
        assert not blocks.may_have_made(free[-1])

    def test_more_ends_than_beginnings(self):
        saved.HookedBlocks().end()

    def test_while_nobody_watches_any_node_may_have_been_made_under_hooks(self):
        blocks = watching()
        number = torch.ones(3, requires_grad=True).exp().grad_fn._sequence_nr()
        assert not blocks.may_have_made(number)
        blocks.remove()
        assert blocks.may_have_made(number)
        assert saved.HookedBlocks().may_have_made(number)
