"""Sums and blocks of an accelerator, from snapshots as `torch.cuda.memory_snapshot()` gives them (made by hand)."""

import pytest

from torch_inspector.observe.heap.allocators import blocks_of, totals

SEGMENTS = [
    {
        "device": 0,
        "address": 1_000,
        "blocks": [
            {"size": 512, "state": "active_allocated"},
            {"size": 256, "state": "inactive"},
            {"size": 512, "state": "active_pending_free"},
        ],
    },
    {"device": 1, "address": 9_000, "blocks": [{"size": 64, "state": "inactive"}]},
    {"device": 0, "address": 5_000, "blocks": [{"size": 2_048, "state": "inactive"}]},
]


@pytest.mark.parametrize(
    ("address", "size"),
    [(1_000, 512), (1_511, 512), (1_512, None), (1_768, 512), (2_280, None), (5_000, None), (1, None)],
)
def test_an_address_belongs_to_the_block_in_use(address, size):
    assert blocks_of(SEGMENTS, 0).size_at(address) == size


def test_the_largest_free_block_is_that_of_the_device():
    assert blocks_of(SEGMENTS, 0).largest_free == 2_048
    assert blocks_of(SEGMENTS, 1).largest_free == 64


class Backend:
    """What `torch.cuda` says once it is in use."""

    started = True

    @classmethod
    def is_initialized(cls):
        return cls.started

    device_count = staticmethod(lambda: 1)
    memory_reserved = staticmethod(lambda _: 3_328)
    memory_allocated = staticmethod(lambda _: 1_024)
    memory_snapshot = staticmethod(lambda: SEGMENTS)
    mem_get_info = staticmethod(lambda _: (10_000, 20_000))


class Torch:
    """A torch with one device."""

    cuda = Backend


def test_sums_of_a_device_in_use():
    (total,), blocks = totals(Torch)
    assert total == ("cuda:0", 1_024, 3_328, 2_048, 6_672)
    assert blocks["cuda:0"].sizes == (512, 512)


def test_a_device_that_was_not_started_is_not_asked(monkeypatch):
    monkeypatch.setattr(Backend, "started", False)
    assert totals(Torch) == ((), {})
