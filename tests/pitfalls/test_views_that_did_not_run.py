"""Views that stand in a branch that was not taken, and those of which the order tells nothing."""

import pytest

from tests.cells import a_notebook

START = "import torch\nimport torch.nn.functional as F\nfrom torch import nn"
BRANCH = """\
def to_maps(x, first={}):
    B, T, H, W, C = x.shape
    {}
    return x.permute(0, 1, 4, 2, 3).reshape(B * T, C, H, W)
to_maps(torch.rand(2, 4, 6, 5, 3))"""
DATA = """\
class Maps(torch.utils.data.Dataset):
    def __init__(self, chw):
        self.chw, self.maps = chw, torch.rand(10, 6, 5, 3)
    def __len__(self):
        return 10
    def __getitem__(self, i):
        x = self.maps[i]
        h, w, c = x.shape
        if self.chw:
            return x.view(c, h, w)
        return x.permute(2, 0, 1)
for batch in torch.utils.data.DataLoader(Maps(False), batch_size=2):
    pass"""
MATCH = "match C:\n        case 1:\n            return x.reshape(B * T, C, H, W)"
PADDED = """\
def shifted(q):
    padded = F.pad(q, (1, 0))
    b, h, rows, cols = padded.shape
    return padded.reshape(b, h, cols, rows)[:, :, 1:]
shifted(torch.rand(2, 3, 4, 5))"""


def severities(code):
    with a_notebook() as notebook:
        notebook.run(START)
        return [one.severity for one in notebook.run(code).findings if one.slug == "view-where-permute-meant"]


@pytest.mark.parametrize(
    "code",
    [
        BRANCH.format(False, "if first: return x.reshape(B * T, C, H, W)"),
        BRANCH.format(True, "if C == 1: return x.reshape(B * T, C, H, W)"),
        BRANCH.format(True, MATCH),
        "y = torch.rand(2, 54, 5)\ny = y.view(2, 5, 6, 9) if len(y) == 3 else y.transpose(1, 2).view(2, 5, 6, 9)",
        (
            "def cut(x, n):\n    b, h, t, d = x.shape\n"
            "    return x.reshape(b, t, h * d) if h == 1 else x.transpose(1, 2).reshape(b, t, h * d)\n"
            "cut(torch.rand(2, 4, 6, 5), 4)"
        ),
        DATA,
        PADDED,
    ],
)
def test_a_view_in_a_branch_that_was_not_taken(code):
    assert severities(code) == []


@pytest.mark.parametrize(
    "branch", ["if first: return x.reshape(B * T, C, H, W)", "if C == 3: return x.reshape(B * T, C, H, W)"]
)
def test_a_view_in_a_branch_that_was_taken(branch):
    assert severities(BRANCH.format(True, branch)) == ["warning"]


@pytest.mark.parametrize(
    "made",
    [
        "(torch.rand(2, 54, 5) > 0.5).view(2, 5, 6, 9)",
        "nn.Parameter(torch.zeros(2, 54, 5)).reshape(2, 5, 6, 9)",
        "torch.rand(2, 4, 6, 5, 3).reshape(-1, 3, 6, 5)",
        "clips.reshape(8, 3, 6, 5).mean()",
        "torch.sum(clips.reshape(8, 3, 6, 5).abs() ** 2)",
    ],
)
def test_the_order_of_what_was_drawn_or_is_reduced_tells_nothing(made):
    assert severities(f"clips = torch.rand(2, 4, 6, 5, 3)\nmade = {made}") == []


@pytest.mark.parametrize("made", ["clips.reshape(8, 3, 6, 5).mean(1)", "(clips.reshape(8, 3, 6, 5) - other).mean()"])
def test_of_a_part_of_the_axes_or_of_pairs_it_does(made):
    code = f"clips, other = torch.rand(2, 4, 6, 5, 3), torch.rand(8, 3, 6, 5)\nmade = {made}"
    assert severities(code) == ["warning"]


def test_what_a_model_learns_is_a_hint():
    assert severities("places = nn.Parameter(torch.zeros(1, 54, 5))\nmade = places.reshape(1, 5, 6, 9)") == ["hint"]
