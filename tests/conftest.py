"""Settings of all tests."""

import gc
import importlib.util

import pytest
from hypothesis import settings

# The same examples on every machine: a red CI is then red at the desk.
settings.register_profile("same", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("same")
# Thousands of notebooks in one process: collected as often as usual, a fifth of the time goes into it.
gc.set_threshold(50_000, 20, 100)


_LONG = ("test_shared_cases", "test_traps", "test_guarantees", "test_pages", "test_quiet")


@pytest.fixture
def no_collection_by_chance():
    """The collector of cycles at rest: what is let go of in a circle stays until a test says otherwise."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def pytest_collection_modifyitems(items):
    """Puts the longest first; skips tests marked `gpu` without a CUDA device, for which alone torch is imported."""
    # A file of minutes, begun last, would keep one process waiting for the other.
    items.sort(key=lambda item: not any(name in item.nodeid for name in _LONG))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _cuda_is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def _cuda_is_available():
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()
