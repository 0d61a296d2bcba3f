"""The one file that touches private torch API."""

import threading
from typing import ClassVar

import pytest
import torch

from tests.cells import a_notebook
from torch_inspector.observe import private
from torch_inspector.observe.in_memory import is_in_memory


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


def test_what_lies_outside_of_its_storage_is_not_in_memory():
    whole = torch.arange(12.0).reshape(3, 4)
    views = (whole, whole.t(), whole[1:, ::2], whole[:1].expand(5, 4), whole[:0])
    assert all(map(is_in_memory, views))
    whole.untyped_storage().resize_(24)
    assert [is_in_memory(view) for view in views] == [False, False, False, True, True]
    others = (torch.ones(2, device="meta"), torch.eye(2).to_sparse(), "no tensor")
    assert not any(is_in_memory(other) for other in others)  # type: ignore[arg-type]


EMPTIED = """
import torch
from torch import nn
from torch.nn import functional as F
x, y = torch.randn(320, 8), torch.randint(0, 2, (320, 1)).float()
net = nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(0, 320, 20):
    xb, yb = x[i:i + 20], y[i:i + 20]
    opt.zero_grad()
    F.binary_cross_entropy_with_logits(net(xb), yb).backward()
    opt.step()
p = nn.Linear(16, 5)(torch.randn(40, 16)).softmax(0)
classes = torch.randint(0, 5, (40,)).float()
right = (p.argmax(1) == classes).float().mean()
whole = torch.randint(0, 3, (320,))
for i in range(0, 320, 20):
    opt.zero_grad()
    F.mse_loss(net(torch.randn(20, 8)), whole[i:i + 20, None].float()).backward()
    opt.step()
for emptied in (x, y, classes, whole):
    emptied.untyped_storage().resize_(0)
"""


def test_tensors_whose_memory_was_given_up_are_not_read():
    with a_notebook() as notebook:
        notebook.run(EMPTIED)
        assert notebook.errors == [None]
