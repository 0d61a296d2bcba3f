"""What is remembered of each optimizer from step to step."""

import gc

import pytest
import torch
from torch import nn

from torch_inspector.facts import Place
from torch_inspector.observe.groups import parameters_of
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.ledger import Ledger
from torch_inspector.observe.sampled import some_values

HERE, THERE = Place(1, 3), Place(1, 9)
FEATURES = torch.randn(8, 3)


class Bench:
    """A model, its optimizer, and the record of it, driven by hand as the observer drives it."""

    def __init__(self):
        self.model = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.record = Ledger().record(1, self.optimizer)

    def backward(self, place=HERE):
        self.record.begin_backward(trail=7)
        self.model(FEATURES).sum().backward()
        self.record.end_backward(place, trail=7)

    def step(self):
        self.optimizer.step()
        self.record.end_step(looked=True)

    @property
    def kept(self):
        """True if the next step would work with gradients of the last one too."""
        return bool(self.record.step_marks) and self.record.backward_count > 0 and not self.record.cleared


def zero_by_hand(bench):
    for parameter in bench.model.parameters():
        parameter.grad.zero_()


def none_by_hand(bench):
    for parameter in bench.model.parameters():
        parameter.grad = None


def replaced_by_hand(bench):
    for parameter in bench.model.parameters():
        parameter.grad = torch.zeros_like(parameter)


CLEARING = {
    "zero_grad": lambda bench: bench.optimizer.zero_grad(),
    "to zero": lambda bench: bench.optimizer.zero_grad(set_to_none=False),
    "of the model": lambda bench: bench.model.zero_grad(),
    "of the model, to zero": lambda bench: bench.model.zero_grad(set_to_none=False),
    "by hand, zero_": zero_by_hand,
    "by hand, None": none_by_hand,
    "by hand, replaced": replaced_by_hand,
    "foreach": lambda bench: torch._foreach_zero_([p.grad for p in bench.model.parameters()]),
    "scaled": lambda bench: [p.grad.mul_(0.9) for p in bench.model.parameters()],
}


def test_gradients_that_stay_are_kept():
    bench = Bench()
    bench.backward()
    bench.step()
    bench.backward()
    assert bench.kept


@pytest.mark.parametrize("name", CLEARING)
def test_gradients_that_somebody_changed_are_not(name):
    bench = Bench()
    bench.backward()
    bench.step()
    CLEARING[name](bench)
    bench.backward()
    assert not bench.kept


def test_the_first_step_has_kept_nothing():
    bench = Bench()
    bench.backward()
    assert not bench.kept


def test_a_step_that_was_not_looked_at_says_nothing():
    bench = Bench()
    bench.backward()
    bench.optimizer.step()
    bench.record.end_step(looked=False)
    bench.backward()
    assert not bench.kept


def test_several_backward_calls_are_counted():
    bench = Bench()
    for _ in range(3):
        bench.backward()
    assert bench.record.backward_count == 3
    assert bench.record.backward_at == HERE


def test_a_backward_call_of_others_is_not_counted():
    bench = Bench()
    bench.record.begin_backward(trail=7)
    nn.Linear(3, 2)(FEATURES).sum().backward()
    bench.record.end_backward(HERE, trail=7)
    assert bench.record.backward_count == 0


def test_gradients_thrown_away_before_use_are_counted():
    bench = Bench()
    for _ in range(3):
        bench.backward()
        bench.optimizer.zero_grad()
        bench.record.clear(THERE)
    bench.backward()
    assert bench.record.discarded_count == 3
    assert bench.record.discarded_at == THERE


def test_gradients_used_by_hand_are_not_thrown_away():
    bench = Bench()
    bench.backward()
    with torch.no_grad():
        for parameter in bench.model.parameters():
            parameter.mul_(0.9)
    none_by_hand(bench)
    bench.backward()
    assert bench.record.discarded_count == 0


def test_gradients_put_in_by_hand_are_seen():
    bench = Bench()
    bench.backward()
    assert not bench.record.written(bench.record.marks())
    replaced_by_hand(bench)
    assert bench.record.written(bench.record.marks())


def test_gradients_of_any_parameter_count():
    bench = Bench()
    assert not bench.record.has_gradients()
    bench.model.bias.grad = torch.zeros(2)
    assert bench.record.has_gradients()


def test_nothing_warns_for_parameters_that_are_no_leaves(recwarn):
    leaf = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    optimizer.param_groups[0]["params"].append(leaf * 2)
    record = Ledger().record(1, optimizer)
    assert record.marks() == []
    assert not record.has_gradients()
    assert list(recwarn) == []


def test_a_record_keeps_neither_optimizer_nor_tensors_alive():
    import weakref

    bench = Bench()
    bench.backward()
    bench.step()
    record, gone = bench.record, weakref.ref(bench.model.weight)
    del bench
    gc.collect()
    assert gone() is None
    assert record.marks() == []
    assert record.keys() == frozenset()


def test_records_of_dead_optimizers_go():
    ledger, keys = Ledger(), Keys()
    kept = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    for optimizer in (kept, torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)):
        ledger.record(keys.of(optimizer), optimizer)
    del optimizer
    gc.collect()
    assert [record.ref() for record in ledger.live()] == [kept]


def test_only_the_latest_optimizers_are_watched():
    ledger = Ledger()
    many = [torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1) for _ in range(40)]
    for number, optimizer in enumerate(many):
        ledger.record(number, optimizer)
    assert [record.key for record in ledger.live()] == list(range(24, 40))


def test_parameters_that_were_stepped():
    ledger, bench = Ledger(), Bench()
    record = ledger.record(1, bench.optimizer)
    assert ledger.stepped_keys() == frozenset()
    record.step_count += 1
    assert ledger.stepped_keys() == {id(bench.model.weight), id(bench.model.bias)}


def test_parameters_behind_a_property_are_not_asked_for():
    class Wrapped(torch.optim.Optimizer):
        def __init__(self):
            pass

        @property
        def param_groups(self):  # type: ignore[override]
            raise AssertionError

    assert parameters_of(Wrapped()) == []


def test_values_are_not_read_where_there_are_none_to_read():
    seen = []

    def loss(value):
        seen.append(some_values(value))
        return value.sum()

    torch.func.grad(loss)(torch.ones(3))
    emptied = torch.ones(3)
    emptied.untyped_storage().resize_(0)
    assert seen == [None]
    assert some_values(emptied) is None
    assert some_values(torch.ones(3)) == (1.0, 1.0, 1.0)
