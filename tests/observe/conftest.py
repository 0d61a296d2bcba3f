"""Makes shells cheap: each one collects garbage when it is reset, through all of torch if nobody says otherwise."""

import gc

import pytest
import torch  # noqa: F401  (so that it is among what is frozen)

from torch_inspector.observe.saved import hooked


@pytest.fixture(autouse=True, scope="session")
def _nothing_of_torch_is_garbage():
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _hooks_of_saved_tensors_are_watched():
    """As in a notebook: without it, torch before 2.10 does not tell what is safe to read in a graph."""
    known = hooked._unknown_below
    hooked.install()
    yield
    hooked.remove()
    hooked._unknown_below = known
