"""One look at everything the user can name."""

import gc
from time import thread_time

import pytest
import torch
from torch import nn

from torch_inspector.failures import Failures
from torch_inspector.observe.graph import GraphReader
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.ledger import Ledger
from torch_inspector.observe.snapshot import Look, Snapshots


class Bench:
    def __init__(self):
        self.failures, self.keys, self.ledger = Failures(), Keys(), Ledger()
        self.snapshots = Snapshots(self.keys, self.ledger, GraphReader(), self.failures)

    def take(self, names=None, *, history=None, seconds=60, cell=1, **options):
        look = Look(names or {}, history or {}, thread_time() + seconds, **options)
        return self.snapshots.take(look, cell)


def take(names, **options):
    bench = Bench()
    snapshot = bench.take(names, **options)
    assert bench.failures.counts == {}, bench.failures.recent
    return snapshot


def test_nothing_at_all():
    snapshot = take({})
    assert (snapshot.tensors, snapshot.modules, snapshot.holders, snapshot.complete) == ((), (), (), True)
    assert snapshot.memory[0].device == "host"


def test_a_tensor():
    (fact,) = take({"x": torch.zeros(2, 3, dtype=torch.float64)}).tensors
    assert (fact.path, fact.shape, fact.dtype, fact.device, fact.nbytes) == ("x", (2, 3), "float64", "cpu", 48)
    assert (fact.requires_grad, fact.is_leaf, fact.made_by, fact.first_seen_cell) == (False, True, "", 1)


def test_a_tensor_with_history():
    (fact,) = take({"x": torch.ones(2, requires_grad=True).exp()}).tensors
    assert (fact.requires_grad, fact.is_leaf, fact.made_by) == (True, False, "ExpBackward0")


def test_a_view_tells_its_storage():
    (fact,) = take({"x": torch.zeros(100)[:1]}).tensors
    assert (fact.nbytes, fact.storage_nbytes) == (4, 400)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(3, device="meta"),
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.eye(3).to_sparse_csr(),
        nn.UninitializedParameter,
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        lambda: torch.zeros(0, 3),
        lambda: torch.zeros(3).share_memory_(),
        lambda: torch.complex(torch.ones(2), torch.ones(2)),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_tensors_of_all_kinds(make):
    assert len(take({"x": make()}).tensors) == 1


def test_a_view_whose_graph_is_broken():
    base = torch.randn(2, 3, requires_grad=True) * 1
    first, second = base.unbind(0)
    with torch.no_grad():
        base.mul_(2)
    snapshot = take({"first": first, "second": second, "loss": torch.ones(1, requires_grad=True).exp()})
    assert [graph.path for graph in snapshot.graphs] == ["loss"]


def test_a_module_that_was_called_in_full_and_others_in_short():
    net, other = nn.Sequential(nn.Linear(3, 2), nn.Softmax(-1)), nn.Linear(2, 2).eval()
    bench = Bench()
    snapshot = bench.take({"net": net, "other": other}, called=frozenset({bench.keys.of(net)}))
    full, short = snapshot.modules
    assert (full.path, full.kind, full.training, full.parameter_count, full.trainable_count) == (
        "net",
        "Sequential",
        True,
        8,
        8,
    )
    assert (full.parameter_nbytes, full.devices, full.softmax_layers) == (32, ("cpu",), ("net[1]",))
    assert [name for _, name in full.parameter_names] == ["0.weight", "0.bias"]
    assert (short.path, short.training, short.parameter_count) == ("other", False, 0)


def test_everything_in_full_on_request():
    (fact,) = take({"net": nn.Linear(2, 2)}, full=True).modules
    assert fact.parameter_count == 6


def test_paths_of_softmax_layers_can_be_typed():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleList([nn.Sequential(nn.Softmax(1))])
            self.named = nn.ModuleDict({"a": nn.Softmax(1)})

    net = Net()
    (fact,) = take({"net": net}, full=True).modules
    assert "net.heads[0][0]" in fact.softmax_layers
    for path in fact.softmax_layers[:1]:
        assert type(eval(path)) is nn.Softmax  # noqa: S307


def test_paths_into_a_module_dict_can_be_typed():
    net = nn.ModuleDict({"a-b": nn.Softmax(1)})
    (fact,) = take({"net": net}, full=True).modules
    assert type(eval(fact.softmax_layers[0])) is nn.Softmax  # noqa: S307


def test_an_optimizer():
    net = nn.Linear(3, 2)
    opt = torch.optim.Adam(net.parameters(), lr=0.5)
    net(torch.ones(1, 3)).sum().backward()
    opt.step()
    (fact,) = take({"opt": opt}, full=True).optimizers
    assert (fact.path, fact.kind, fact.learning_rate, fact.parameter_count) == ("opt", "Adam", 0.5, 2)
    assert fact.parameter_keys == {id(net.weight), id(net.bias)}
    assert fact.state_nbytes == 2 * 32 + 2 * 4


def test_a_learning_rate_that_is_a_tensor_is_not_read():
    opt = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=torch.tensor(0.1))
    assert take({"opt": opt}).optimizers[0].learning_rate is None


def test_results_in_the_history():
    snapshot = take({"x": 1}, history={4: torch.zeros(10)})
    assert [holder.path for holder in snapshot.holders] == ["Out[4]"]


def test_names_of_ipython_are_left_out():
    assert take({"_": torch.ones(1), "_3": torch.ones(1), "Out": {1: torch.ones(1)}, "x": 1}).tensors == ()


def test_the_first_cell_of_a_tensor_is_remembered():
    bench, tensor = Bench(), torch.ones(1)
    bench.take({"x": tensor}, cell=3)
    assert bench.take({"x": tensor}, cell=5).tensors[0].first_seen_cell == 3
    assert bench.take({"x": torch.ones(1)}, cell=6).tensors[0].first_seen_cell == 6


def test_time_is_limited():
    snapshot = take({f"x{i}": torch.ones(1) for i in range(2_000)}, seconds=-1)
    assert not snapshot.complete


def test_very_many_tensors_are_cut():
    snapshot = take({f"x{i}": torch.ones(1) for i in range(800)})
    assert len(snapshot.tensors) == 500
    assert not snapshot.complete


def test_a_part_that_fails_leaves_the_others(monkeypatch):
    bench = Bench()
    monkeypatch.setattr(bench.snapshots, "_modules", lambda *_: 1 / 0)
    snapshot = bench.take({"x": torch.ones(1), "net": nn.ReLU()})
    assert (len(snapshot.tensors), snapshot.modules) == (1, ())
    assert bench.failures.counts == {"modules": 1}


def test_no_warning_for_gradients(recwarn):
    leaf = torch.ones(2, requires_grad=True)
    middle = leaf * 2
    take({"leaf": leaf, "middle": middle, "out": middle.sum()}, history={1: middle})
    assert list(recwarn) == []


def test_no_optimizer_comes_under_watch():
    bench = Bench()
    bench.take({"opt": torch.optim.SGD([nn.Parameter(torch.ones(1))])})
    assert bench.ledger.live() == []


def test_an_optimizer_whose_fields_cannot_be_read_is_left_out():
    class Hidden(torch.optim.SGD):
        __dict__ = property(lambda _: 1 / 0)

    assert take({"opt": object.__new__(Hidden)}).optimizers == ()


@pytest.mark.parametrize("on", [True, False])
def test_no_full_collection_is_started(on):
    was = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        names = {f"x{i}": [{"n": [i]} for i in range(300)] for i in range(50)}
        gc.collect()
        before = gc.get_stats()[2]["collections"]
        take(names)
        assert gc.get_stats()[2]["collections"] == before
        assert gc.isenabled() == on
    finally:
        (gc.enable if was else gc.disable)()


def test_a_tensor_that_changes_its_shape_is_looked_at_again():
    bench, tensor = Bench(), torch.ones(2)
    bench.take({"x": tensor})
    tensor.resize_(3)
    assert bench.take({"x": tensor}).tensors[0].shape == (3,)
