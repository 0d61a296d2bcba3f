"""What `Out` keeps alive."""

import torch
from torch import nn

from torch_inspector.observe.graph import GraphReader
from torch_inspector.observe.history import history_facts, module_tensors, storages_of
from torch_inspector.observe.namespace import walk_names

LATER = float("inf")


def holders(history, **names):
    return history_facts(history, names, walk_names(names.items(), LATER), GraphReader(), LATER)


def test_a_result_that_nobody_else_holds():
    (fact,) = holders({3: torch.zeros(10, 10)})
    assert (fact.path, fact.kind, fact.nbytes, fact.shape, fact.dtype, fact.device) == (
        "Out[3]",
        "Tensor",
        400,
        (10, 10),
        "float32",
        "cpu",
    )
    assert fact.graph_nbytes == 0


def test_a_result_that_a_variable_holds_too():
    big = torch.zeros(10, 10)
    assert holders({3: big}, big=big) == ()
    assert holders({3: big[1:]}, big=big) == ()


def test_a_result_that_is_the_gradient_of_a_variable():
    weight = nn.Parameter(torch.zeros(10))
    weight.grad = torch.zeros(10)
    assert holders({1: weight.grad}, weight=weight) == ()


def test_a_module_holds_its_parameters_gradients_and_buffers():
    net = nn.BatchNorm1d(10)
    net(torch.randn(4, 10)).sum().backward()
    assert holders({1: net.weight, 2: net.running_mean, 3: net.bias.grad}, net=net) == ()
    assert len(list(module_tensors(net))) == 5


def test_a_module_in_the_history():
    (fact,) = holders({2: nn.Linear(10, 10)})
    assert (fact.kind, fact.nbytes, fact.shape) == ("Linear", 440, None)


def test_bytes_shared_by_results_count_once():
    big = torch.zeros(100)
    assert [fact.nbytes for fact in holders({1: big, 2: big[:50], 3: big.view(10, 10)})] == [400]


def test_a_graph_behind_a_result():
    weight = nn.Parameter(torch.zeros(100))
    (fact,) = holders({1: weight.exp().sum()}, weight=weight)
    assert fact.graph_nbytes == 400
    assert fact.nbytes == 404


def test_a_graph_that_a_variable_holds_too():
    out = nn.Parameter(torch.zeros(100)).exp().sum()
    assert holders({1: out}, out=out) == ()


def test_results_without_tensors():
    assert holders({1: 3, 2: "text", 3: [1, 2], "x": torch.zeros(9)}) == ()


def test_tensors_inside_a_result():
    (fact,) = holders({1: {"a": [torch.zeros(10), torch.zeros(10)]}})
    assert (fact.kind, fact.nbytes, fact.shape) == ("dict", 80, None)


def test_odd_storages_are_left_out():
    names = walk_names({"m": torch.zeros(3, device="meta"), "s": torch.eye(3).to_sparse()}.items(), LATER)
    assert storages_of(names) == {}
