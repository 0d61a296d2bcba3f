"""Makes shells cheap: each one collects garbage when it is reset, through all of torch if nobody says otherwise."""

import gc

import pytest
import torch  # noqa: F401  (so that it is among what is frozen)


@pytest.fixture(autouse=True, scope="session")
def _nothing_of_torch_is_garbage():
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
