"""The one file that touches private torch API."""

import threading
from typing import ClassVar

import pytest
import torch

from torch_inspector.observe import private


class Loud(torch.Tensor):
    calls: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(str(func))
        return super().__torch_function__(func, types, args, kwargs or {})


def test_unseen_runs_no_torch_function():
    loud = torch.ones(3).as_subclass(Loud)
    Loud.calls.clear()
    with private.unseen():
        assert tuple(loud.shape) == (3,)
        assert loud.grad_fn is None
        assert private.storage_of(loud) is not None
    assert Loud.calls == []
    assert loud.shape
    assert Loud.calls


def test_unseen_runs_no_mode_of_the_user():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    tensor = torch.ones(3, requires_grad=True) * 2
    with Mode():
        with private.unseen():
            assert private.storage_of(tensor) is not None
            assert tensor.numel() == 3
        assert seen == []
        tensor + 1
    assert seen


def test_numbers_of_nodes_grow():
    one = torch.ones(1, requires_grad=True)
    before = private.sequence_number()
    first, second = one * 1, one * 1
    assert before <= private.node_number(first.grad_fn) < private.node_number(second.grad_fn)
    assert private.node_number(second.grad_fn) < private.sequence_number()
    assert private.node_number(object()) == -1


@pytest.mark.skipif(not hasattr(torch.autograd.graph.Node, "_input_metadata"), reason="this torch does not tell")
def test_output_shape():
    out = torch.ones(2, 3, requires_grad=True) * 2
    assert private.output_shape(out.grad_fn) == (2, 3)
    assert private.output_shape(out.grad_fn, 5) is None
    assert private.output_shape(object()) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, device="meta"),
        lambda: torch.eye(3).to_sparse(),
        torch.nn.UninitializedParameter,
    ],
)
def test_a_tensor_without_storage_has_none(make):
    assert private.storage_of(make()) is None


def test_views_share_a_storage():
    base = torch.ones(4, 4)
    assert private.storage_of(base) == private.storage_of(base[1:])
    assert (private.storage_of(base) or (0, 0))[1] == 64


def test_a_storage_resized_to_nothing_is_read_safely():
    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(0)
    assert (private.storage_of(tensor) or (0, 1))[1] == 0


def test_less_is_walked_outside_the_main_thread():
    limits = []
    thread = threading.Thread(target=lambda: limits.append(private.deep_walk_limit()))
    thread.start()
    thread.join()
    assert limits == [1_000]
    assert private.deep_walk_limit() in (1_000, 10_000)
