"""Makes the many shells of these tests cheap."""

import gc

import pytest
import torch  # noqa: F401  # its objects are the ones that would be looked through


@pytest.fixture(scope="module", autouse=True)
def quick_collections():
    """Leaves all that is imported out of garbage collections: every shell that ends makes one, of 0.2 s otherwise."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
