"""What `Out` keeps alive."""

import functools
import sys
import threading
import types

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from torch_inspector.observe.graph import GraphReader
from torch_inspector.observe.history import OutputHistory, module_tensors, storages_of
from torch_inspector.observe.namespace import hidden, walk_names

LATER = float("inf")


def holders(history, **names):
    shown = [(name, value) for name, value in names.items() if not hidden(name)]
    return OutputHistory(GraphReader()).facts(history, names, walk_names(shown, LATER), LATER)


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


# what a walk by name does not find ---------------------------------------------------


def a_closure(tensor):
    return lambda: tensor


def a_generator(tensor):
    def values():
        yield tensor

    made = values()
    next(made)
    return made


def a_cache(tensor):
    @functools.lru_cache
    def cached():
        return tensor

    cached()
    return cached


def a_class(tensor):
    return type("Cache", (), {"table": tensor, "__module__": "__main__"})


def a_module_of_the_user(tensor):
    module = types.ModuleType("made_by_hand")
    vars(module)["table"] = tensor
    return module


def an_optimizer(tensor):
    weight = nn.Parameter(torch.zeros(10))
    optimizer = torch.optim.Adam([weight])
    optimizer.state[weight] = {"exp_avg": tensor}
    return optimizer


HOLDERS = [
    pytest.param(TensorDataset, id="object of a library"),
    pytest.param(a_closure, id="closure"),
    pytest.param(a_generator, id="generator"),
    pytest.param(a_cache, id="cache"),
    pytest.param(a_class, id="class"),
    pytest.param(a_module_of_the_user, id="module of the user"),
    pytest.param(an_optimizer, id="optimizer state"),
    pytest.param(lambda x: functools.partial(print, x), id="partial"),
    pytest.param(lambda x: {0: [{"a": {"b": {"c": {"d": x}}}}]}, id="deep"),
    pytest.param(lambda x: TensorDataset(x[2:]), id="view"),
    pytest.param(lambda x: x.numpy(), id="array"),
    pytest.param(lambda x: [x.numpy()[1:].T], id="view of an array"),
    pytest.param(lambda x: x.untyped_storage(), id="storage"),
    pytest.param(lambda x: (nn.Parameter(torch.ones(10)) * x).sum(), id="graph of a variable"),
]


@pytest.mark.parametrize("make", HOLDERS)
def test_whatever_a_variable_leads_to_is_held(make):
    result = torch.ones(10)
    assert holders({3: result}, one=make(result)) == ()
    assert [fact.path for fact in holders({3: result}, one=make(torch.ones(10)))] == ["Out[3]"]


def test_what_cannot_be_searched_in_time_is_not_claimed(monkeypatch):
    monkeypatch.setattr("torch_inspector.observe.history._PROOF_S", -1)
    assert holders({3: torch.ones(10)}, one=[object()]) == ()


def test_names_of_ipython_hold_nothing():
    result = torch.ones(10)
    assert len(holders({3: result}, _=result, _3=result, Out={3: result})) == 1


def test_the_variables_that_held_it_are_remembered():
    history, names = OutputHistory(GraphReader()), {"data": torch.zeros(100)}
    out = {2: names["data"][:5]}

    def facts():
        return history.facts(out, names, walk_names(names.items(), LATER), LATER)

    assert facts() == ()
    del names["data"]
    (fact,) = facts()
    assert (fact.names, fact.nbytes, fact.element_nbytes) == (("data",), 400, 20)
    assert facts() == (fact,)


def test_a_gradient_that_is_cleared():
    weight = nn.Parameter(torch.zeros(10))
    weight.sum().backward()
    history, names = OutputHistory(GraphReader()), {"weight": weight}
    out = {2: weight.grad}

    def facts():
        return history.facts(out, names, walk_names(names.items(), LATER), LATER)

    assert facts() == ()
    weight.grad = None
    assert [fact.nbytes for fact in facts()] == [40]


def test_an_optimizer_in_the_history():
    net = nn.Linear(10, 10)
    (fact,) = holders({2: torch.optim.SGD(net.parameters())})
    assert (fact.kind, fact.nbytes) == ("SGD", 440)
    assert holders({2: torch.optim.SGD(net.parameters())}, net=net) == ()


def test_results_with_two_values():
    (fact,) = holders({2: torch.zeros(10).sort()})
    assert (fact.kind, fact.nbytes) == ("torch.return_types.sort", 120)


def test_no_gradient_is_read_in_another_thread():
    weight = nn.Parameter(torch.zeros(10))
    weight.grad = torch.zeros(10)
    names = walk_names({"weight": weight}.items(), LATER)
    found = []
    thread = threading.Thread(target=lambda: found.append(len(storages_of(names))))
    thread.start()
    thread.join()
    assert (found, len(storages_of(names))) == ([1], 2)


def test_it_is_looked_at_once_while_nothing_changes(monkeypatch):
    history, out, names = OutputHistory(GraphReader()), {1: torch.zeros(10), 2: nn.Linear(2, 2)}, {"x": [1]}
    facts = history.facts(out, names, walk_names([], LATER), LATER)
    monkeypatch.setattr(history, "_look", lambda *_: 1 / 0)
    keeps_none_busy = [None] * 100
    assert history.facts(out, names, walk_names([], LATER), LATER) == facts
    assert len(keeps_none_busy) == 100


def test_nothing_is_kept_alive():
    result = torch.zeros(10)
    before = sys.getrefcount(result)
    history = OutputHistory(GraphReader())
    history.facts({1: result}, {}, walk_names([], LATER), LATER)
    assert sys.getrefcount(result) == before
