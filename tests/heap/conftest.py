"""Up to torch 2.9 what a graph saved is read only where it is known that no hook would run: while somebody watches."""

import pytest

from torch_inspector.observe import saved


@pytest.fixture(autouse=True, scope="session")
def _watched():
    saved.hooked.install()
    yield
    saved.hooked.remove()
