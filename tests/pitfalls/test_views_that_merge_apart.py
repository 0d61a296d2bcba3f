"""Views that merge axes which are not neighbours: layers with sizes, frames with a batch, classes with rows."""

import pytest

from tests.cells import findings_in

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
both, two, head = nn.LSTM(4, 5, bidirectional=True), nn.GRU(4, 5, 2), nn.Linear(10, 3)
words, y = torch.randn(7, 6, 4), torch.randint(0, 3, (6,))
tagger, sound, tags = nn.Conv1d(4, 3, 1), torch.randn(6, 4, 7), torch.randint(0, 3, (6, 7))
film, picture = nn.Conv3d(3, 4, 1), nn.Conv2d(4, 2, 3)
class Frames(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.query = nn.BatchNorm3d(4), nn.Conv3d(4, 4, (1, 3, 3), padding=(0, 1, 1))
    def forward(self, x):
        q, k = self.query(self.norm(x)), x
        b, c, t, h, w = q.shape
        q = q{cut}
        return q, k
frames = Frames()"""
STATE = "h = {state}\nloss = F.cross_entropy(head(h{cut}), y)\nloss.backward()"
STATES = ["both(words)[1][0]", "two(words)[1]", "torch.stack([words[0] @ two.weight_hh_l0[:5].T[:4]] * 2)"]


def found(lines, cut=""):
    return findings_in(SETUP.replace("{cut}", cut), lines, slug="view-where-permute-meant", fails=False)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("cut", [".view(6, 10)", ".reshape(-1, 10)", ".view(-1, 10, 1)[..., 0]"])
def test_layers_of_a_state(state, cut):
    (finding,) = found(STATE.format(state=state, cut=cut))
    assert "of Stack from (2, 6, 5) to (6, 10" in finding.message
    assert finding.fix.startswith("# .transpose(0, 1).reshape(6, 10")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("cut", [".transpose(0, 1).reshape(6, 10)", ".permute(1, 0, 2).flatten(1)"])
def test_layers_of_a_state_side_by_side(state, cut):
    assert not found(STATE.format(state=state, cut=cut))


@pytest.mark.parametrize(
    "h",
    [
        "torch.cat([*two(words)[1]], 1)",
        "torch.stack([*two(words)[1]], 1).flatten(1)",
        "torch.stack([*two(words)[1]], -2).view(6, 10)",
        "two(words[:, :2])[1].view(2, 10).repeat(3, 1)",  # as many layers as samples: rows may be meant
        "two(words)[1].view(1, 2, 6, 5)[0, -1].repeat(1, 2)",
    ],
)
def test_other_ways_to_join_layers(h):
    assert not found(STATE.format(state=h, cut=""))


@pytest.mark.parametrize("cut", [".reshape(b * t, c, h * w)", ".view(b * t, c, h, w)", ".reshape(t * b, c, -1)"])
def test_frames_of_clips(cut):
    (finding,) = found("with torch.no_grad():\n    seen = frames(torch.rand(2, 4, 6, 5, 5))", cut)
    assert finding.fix == "q = q.transpose(1, 2)" + cut.replace("view", "reshape")


QUERIES = """
from torch import nn
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Conv3d(4, 4, 1), nn.Conv3d(4, 4, 1), nn.Conv3d(4, 4, 1)
    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        b, c, t, h, w = q.shape
        q = q.reshape(b * t, c, h * w).permute(0, 2, 1)
        k = k.reshape(b * t, c, h * w)
        weights = torch.softmax(torch.bmm(q, k), dim=2)
        v = v.reshape(b * t, c, h * w)
        return torch.bmm(v, weights.permute(0, 2, 1))
attention = Attention()
"""


def test_the_same_cut_of_several_is_one_finding():
    (finding,) = found(f"{QUERIES}\nseen = attention(torch.rand(2, 4, 6, 5, 5))")
    assert finding.message.endswith("So are `k` and `v`.")
    assert "v = v.transpose(1, 2).reshape(b * t, c, h * w)" in finding.fix.splitlines()


PAST = """
def laid_out(x):
    b, c, h, w = x.shape
    return x{cut}
"""


@pytest.mark.parametrize(
    ("cut", "moved"),
    [
        (".view(b, -1, h, 1)", "permute(0, 1, 3, 2)"),
        (".reshape(x.size(0), -1, x.size(2))", "transpose(2, 3)"),
        (".view(2, -1, x.shape[2])", "permute(0, 1, 3, 2)"),
        (".view(-1, c, w)", "transpose(1, 2)"),
    ],
)
def test_axes_merged_past_one_that_stays(cut, moved):
    (finding,) = found(PAST.format(cut=cut) + "seen = laid_out(torch.rand(2, 4, 6, 5))")
    new = cut.replace("view", "reshape")
    assert finding.fix == f"x.{moved}{new}  # in place of x{cut}"


@pytest.mark.parametrize(
    ("cut", "sizes"),
    [
        (".view(b, -1, h)", "2, 4, 6, 6"),
        (".view(b, -1, h, 1)", "2, 4, 6, 1"),
        (".view(b, -1, w)", "2, 4, 6, 5"),
        (".view(b, c, -1)", "2, 4, 6, 5"),
        (".view(-1, h, w)", "2, 4, 6, 5"),
        (".permute(0, 1, 3, 2).reshape(b, -1, h)", "2, 4, 6, 5"),
    ],
)
def test_axes_merged_side_by_side(cut, sizes):
    assert not found(PAST.format(cut=cut) + f"seen = laid_out(torch.rand({sizes}))")


def test_frames_of_clips_in_the_graph():
    (finding,) = found("loss = picture(film(torch.rand(2, 3, 6, 5, 5)).view(-1, *[4, 5, 5])).mean()\nloss.backward()")
    assert "from (2, 4, 6, 5, 5) to (12, 4, 5, 5) without moving a number: channels and frames" in finding.message


@pytest.mark.parametrize(
    "cut",
    [
        ".transpose(1, 2).reshape(b * t, c, h * w)",
        ".reshape(b * c, t, h * w)",
        ".reshape(b, c * t, h, w)",
        ".reshape(b, c, t * h * w)",
    ],
)
def test_clips_cut_between_neighbours(cut):
    assert not found("with torch.no_grad():\n    seen = frames(torch.rand(2, 4, 6, 5, 5))", cut)


def test_as_many_frames_as_channels_tell_nothing():
    assert not found("seen = frames(torch.rand(2, 4, 4, 5, 5))[1]", ".reshape(b * t, c, h * w)")


@pytest.mark.parametrize(
    "loss",
    [
        "F.cross_entropy(tagger(sound).view(-1, 3), tags.view(-1))",
        "F.cross_entropy(tagger(sound).reshape(6 * 7, 3), tags.flatten())",
        "F.nll_loss(tagger(sound).log_softmax(1).view(-1, 3), tags.view(-1))",
        "F.nll_loss(F.log_softmax(tagger(sound).view(-1, 3), 1), tags.view(-1))",
    ],
)
def test_classes_of_a_convolution(loss):
    (finding,) = found(f"loss = {loss}\nloss.backward()")
    assert finding.fix == "# .transpose(1, 2).reshape(42, 3) in place of the view"


@pytest.mark.parametrize(
    "loss",
    [
        "F.cross_entropy(tagger(sound), tags)",
        "F.cross_entropy(tagger(sound).mT.reshape(-1, 3), tags.view(-1))",
        "F.cross_entropy(tagger(sound[..., :3]).reshape(-1, 3), tags[:, :3].flatten())",  # may be turned already
        "tagger(sound).view(-1, 3).square().mean()",
    ],
)
def test_classes_in_their_place(loss):
    assert not found(f"loss = {loss}\nloss.backward()")


MAPS = "pic = nn.Conv2d(2, 4, 3)(torch.randn(2, 2, {size}))\nb, c, h, w = pic.shape\nout = pic{cut} * 2"


@pytest.mark.parametrize(("size", "cut"), [("8, 7", ".view(b, -1, h, 1)"), ("7, 9", ".relu().reshape(b, c * w, h, 1)")])
def test_width_merged_with_channels_across_the_height(size, cut):
    (finding,) = found(MAPS.format(size=size, cut=cut))
    assert ".permute(0, 1, 3, 2).reshape(b, " in finding.fix


@pytest.mark.parametrize(
    ("size", "cut"),
    [
        ("8, 7", ".permute(0, 1, 3, 2).reshape(b, -1, h, 1)"),
        ("8, 8", ".reshape(b, -1, h, 1)"),  # channels and rows are neighbours
        ("8, 7", ".reshape(b, c * h, w, 1)"),
        ("8, 3", ".reshape(b, -1, h, 1)"),
    ],
)
def test_neighbours_may_be_merged(size, cut):
    assert not found(MAPS.format(size=size, cut=cut))


READ = """
class Lines(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.rnn = nn.Conv2d(1, 16, 3, padding=1), nn.GRU(128, 5)
    def forward(self, x):
        f = self.conv(x).relu()
        b, c, h, w = f.shape
        s = f{cut}
        return {read}
loss = Lines()(torch.rand(2, 1, 4, 8)).mean()
loss.backward()
"""
RNN = "self.rnn(s.squeeze(3).permute(2, 0, 1))[0]"


@pytest.mark.parametrize(
    ("cut", "read", "severities"),
    [
        (".view(b, c * w, h, 1)", "s.mean(2)", ["warning"]),
        (".reshape(2, -1, f.size(2), 1)", "s.mean(2)", ["warning"]),
        (".view(2, 128, 4, 1)", RNN, ["hint"]),
        (".view(2, 128, 4, 1)", "F.avg_pool2d(s, (4, 1))", []),  # groups of four numbers of a row
        (".view(2, 128, 4, 1)", "s ** 2", []),
        (".transpose(2, 3).reshape(b, c * w, h, 1)", RNN, []),
    ],
)
def test_groups_of_a_row_may_be_as_long_as_there_are_rows(cut, read, severities):
    cell = READ.replace("{cut}", cut).replace("{read}", read)
    assert [one.severity for one in found(cell)] == severities
