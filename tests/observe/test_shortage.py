"""What the allocators' messages say."""

import pytest
import torch

from torch_inspector.observe.place import CodeFile, Places
from torch_inspector.observe.shortage import parsed, shortage_fact

MB, GB = 1 << 20, 1 << 30

NEW = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.25 GiB of which 1.50 GiB is "
    "free. Including non-PyTorch memory, this process has 77.75 GiB memory in use. Of the allocated memory 70.00 GiB "
    "is allocated by PyTorch, and 6.25 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory "
    "is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
SHARED = (
    "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 15.75 GiB of which 100.50 MiB is "
    "free. Process 4242 has 9.00 GiB memory in use. Process 77 has 6.00 GiB memory in use. 12.00 GiB allowed; Of the "
    "allocated memory 8.50 GiB is allocated by PyTorch, with 256.00 MiB allocated in private pools (e.g., CUDA "
    "Graphs), and 128.00 MiB is reserved by PyTorch but unallocated."
)
OLD = (
    "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 8.00 GiB total capacity; 6.50 GiB already allocated; "
    "8.50 MiB free; 7.00 GiB reserved in total by PyTorch)"
)
MPS = (
    "MPS backend out of memory (MPS allocated: 8.00 GiB, other allocations: 1.00 GiB, max allowed: 9.00 GiB). "
    "Tried to allocate 256 bytes on private pool."
)


def test_a_message_of_now():
    fact = parsed(NEW)
    assert fact is not None
    assert (fact.device, fact.asked_nbytes, fact.total_nbytes) == ("cuda:1", 2 * GB, int(79.25 * GB))
    assert (fact.free_nbytes, fact.in_use_nbytes) == (int(1.5 * GB), int(77.75 * GB))
    assert (fact.allocated_nbytes, fact.unallocated_nbytes) == (70 * GB, int(6.25 * GB))


def test_a_device_that_several_processes_share():
    fact = parsed(SHARED)
    assert fact is not None
    assert (fact.device, fact.asked_nbytes, fact.free_nbytes) == ("cuda:0", 512 * MB, int(100.5 * MB))
    assert (fact.total_nbytes, fact.allocated_nbytes) == (int(15.75 * GB), int(8.5 * GB))
    assert (fact.unallocated_nbytes, fact.in_use_nbytes) == (128 * MB, None)


def test_a_message_of_torch_1():
    fact = parsed(OLD)
    assert fact is not None
    assert (fact.asked_nbytes, fact.total_nbytes, fact.free_nbytes) == (20 * MB, 8 * GB, int(8.5 * MB))
    assert (fact.allocated_nbytes, fact.unallocated_nbytes) == (int(6.5 * GB), GB // 2)


def test_other_devices():
    fact = parsed(MPS)
    assert fact is not None
    assert (fact.device, fact.asked_nbytes, fact.total_nbytes, fact.allocated_nbytes) == ("mps:0", 256, 9 * GB, 8 * GB)
    fact = parsed("XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB.")
    assert fact is not None
    assert (fact.device, fact.asked_nbytes, fact.total_nbytes) == ("xpu:0", 2 * GB, 16 * GB)


@pytest.mark.parametrize(
    "message",
    ["", "out of memory", "CUDA out of memory.", "Tried to allocate 2.00 GiB", "CUDA error: out of memory", "boom"],
)
def test_other_messages(message):
    assert parsed(message) is None


def ask():
    return torch.empty(10**15)


def wrapped():
    try:
        ask()
    except RuntimeError as error:
        raise ValueError("no room") from error


def while_handling():
    try:
        ask()
    except RuntimeError:
        raise KeyError  # noqa: B904


@pytest.mark.parametrize("call", [ask, wrapped, while_handling])
def test_a_real_failure_of_the_host(call):
    places = Places()
    places.add(__file__, CodeFile(3, 0, ""))
    with pytest.raises((RuntimeError, ValueError, KeyError)) as caught:
        call()
    fact = shortage_fact(caught.value, places)
    assert fact is not None
    assert (fact.device, fact.asked_nbytes) == ("cpu", 4 * 10**15)
    assert fact.total_nbytes is not None
    assert fact.place.line == ask.__code__.co_firstlineno + 1
    assert fact.place.function == "ask"


def test_an_exception_of_the_user_with_strange_arguments():
    class StrangeError(RuntimeError):
        @property
        def args(self):  # type: ignore[override]
            raise AssertionError

    assert shortage_fact(StrangeError(3), Places()) is None
    assert shortage_fact(RuntimeError(["allocate"]), Places()) is None
