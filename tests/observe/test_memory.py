"""Bytes per device, from counters only."""

from types import SimpleNamespace

import torch

from torch_inspector.observe import memory
from torch_inspector.observe.memory import host_memory, memory_facts


def test_the_host_is_measured():
    fact = host_memory()
    assert fact.device == "host"
    assert fact.allocated_nbytes > 0
    assert fact.reserved_nbytes is None


def test_the_machine_is_asked_for_a_report_only():
    assert host_memory().total_nbytes is None
    fact = memory_facts(None, full=True)[0]
    assert fact.total_nbytes is not None
    assert fact.free_nbytes is not None
    assert fact.allocated_nbytes < fact.total_nbytes


def test_without_torch_there_is_only_the_host():
    assert [fact.device for fact in memory_facts(None)] == ["host"]


def test_no_device_is_started():
    assert memory_facts(torch)[0].device == "host"
    assert not torch.cuda.is_initialized()


class Counters:
    def __init__(self, *, started=True, allocated=(5, 0)):
        self.started, self.allocated = started, allocated

    def is_initialized(self):
        return self.started

    def device_count(self):
        return len(self.allocated)

    def memory_allocated(self, index):
        return self.allocated[index]

    def memory_reserved(self, index):
        return 2 * self.allocated[index]

    def max_memory_allocated(self, index):
        return 3 * self.allocated[index]

    def get_device_properties(self, index):
        return SimpleNamespace(total_memory=100 + index)


def a_torch(**backends):
    return SimpleNamespace(backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: False)), **backends)


def test_a_started_accelerator_gives_its_counters():
    _, fact = memory_facts(a_torch(cuda=Counters()))
    assert (fact.device, fact.allocated_nbytes, fact.reserved_nbytes, fact.peak_nbytes) == ("cuda:0", 5, 10, 15)
    assert fact.total_nbytes == 100


def test_one_that_nobody_started_is_not_asked():
    class Untouchable(Counters):
        def device_count(self):
            raise AssertionError

    assert len(memory_facts(a_torch(cuda=Untouchable(started=False), xpu=Untouchable(started=False)))) == 1


def test_devices_without_bytes_are_left_out():
    assert [f.device for f in memory_facts(a_torch(xpu=Counters(allocated=(0, 7))))][1:] == ["xpu:1"]


def test_the_peak_is_never_below_what_is_in_use(monkeypatch):
    monkeypatch.setattr(memory, "_host_peak", lambda: 4096)
    fact = host_memory()
    assert fact.peak_nbytes is not None
    assert fact.peak_nbytes >= fact.allocated_nbytes
