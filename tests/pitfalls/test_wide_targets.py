"""What brings targets of a binary loss inside 0 to 1, by what they are."""

import pytest

from tests.fakes import a_place, a_run
from torch_inspector.facts.wide_targets import Extent, into_unit

LARGEST = "the targets by the largest number that they can be; for class numbers take CrossEntropyLoss"


@pytest.mark.parametrize(
    ("extent", "said"),
    [
        ((-1, 1), "add 1 to the targets and divide them by 2"),
        ((0, 255), "divide the targets by 255"),
        ((0, 253.0), "divide the targets by 255"),
        ((0, 100), "divide the targets by 100"),
        ((0, 240.5), "divide the targets by 255"),
        ((0, 99), f"divide {LARGEST}"),
        ((18, 78), f"divide {LARGEST}"),
        ((0, 1000), f"divide {LARGEST}"),
        ((0, 32), "make the targets 0 and 1: 1 for those above 0"),
        ((1, 2), "make the targets 0 and 1: 1 for those above 1"),
        ((0, 3), "make the targets 0 and 1: 1 for those above 0"),
        ((-0.38, 2.82), "leave the targets as they were before they were normalised, 0 to 1"),
        ((2, 2), "make the targets 0 and 1"),
    ],
)
def test_targets_are_brought_inside_by_what_they_are(extent, said):
    assert into_unit(a_run(), a_place(), "", Extent(*extent)) == f"{said}; for quantities take MSELoss"
