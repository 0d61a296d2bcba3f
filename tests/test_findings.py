"""How findings say numbers of things."""

import pytest

from torch_inspector.findings import all_of


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "the only gradient"), (2, "both gradients"), (3, "all 3 gradients"), (1024, "all 1,024 gradients")],
)
def test_all_of_some_things(count, text):
    assert all_of(count, "gradient") == text
