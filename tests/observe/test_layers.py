"""What the layers of a module say."""

import pytest
import torch
from torch import nn

from torch_inspector.observe import layers


class Noise(nn.Module):
    """Adds noise in train mode only."""

    def __init__(self, std):
        super().__init__()
        self.std = std

    def forward(self, x):
        return x + torch.randn_like(x) * self.std if self.training else x


class Auxiliary(nn.Module):
    """Reads the mode for something that is no chance."""

    def forward(self, x):
        return (x, x) if self.training else x


@pytest.mark.parametrize(
    ("layer", "kind"),
    [
        (nn.Dropout(0.1), "Dropout"),
        (nn.Dropout(0.0), ""),
        (nn.BatchNorm1d(3), "BatchNorm1d"),
        (nn.BatchNorm1d(3, track_running_stats=False), ""),
        (nn.InstanceNorm1d(3), ""),
        (nn.LSTM(2, 2, num_layers=2, dropout=0.1), "LSTM"),
        (nn.LSTM(2, 2), ""),
        (nn.MultiheadAttention(4, 2, dropout=0.1), "MultiheadAttention"),
        (nn.MultiheadAttention(4, 2), ""),
        (nn.RReLU(), "RReLU"),
        (nn.Linear(2, 2), ""),
        (Noise(0.1), "Noise (reads self.training)"),
        (Noise(0.0), ""),
        (Auxiliary(), ""),
    ],
)
def test_layers_that_depend_on_the_mode(layer, kind):
    assert layers.depends_on_mode(layer) == kind


def test_a_frozen_part_sleeps_on_purpose():
    body = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout())
    model = nn.Sequential(body.requires_grad_(False), nn.Linear(2, 1), nn.Dropout()).eval()
    assert layers.look_inside(model) == layers.Inside((), (("BatchNorm1d", 1), ("Dropout", 2)), 2)


def test_softmax_layers():
    model = nn.Sequential(nn.Softmax(1), nn.Sequential(nn.Softmax2d()), nn.LogSoftmax(1))
    assert layers.softmax_layers(model) == ("0", "1.0")


def test_a_class_that_computes_its_dictionary_is_not_asked():
    class Own(nn.Dropout):
        @property
        def __dict__(self):  # type: ignore[override]
            raise AssertionError

    assert layers.depends_on_mode(Own.__new__(Own)) == ""


PLAIN = nn.Module()
PLAIN.add_module("0", nn.Linear(2, 2))


class Stack(nn.ModuleList):
    """A list of the user's own."""


@pytest.mark.parametrize(
    ("module", "name", "path"),
    [
        (nn.Sequential(nn.Linear(2, 2)), "0", "net[0]"),
        (nn.Sequential(nn.Sequential(nn.Linear(2, 2))), "0.0", "net[0][0]"),
        (Stack([nn.Linear(2, 2)]), "0", "net[0]"),
        (nn.ModuleDict({"1": nn.ModuleList([nn.Linear(2, 2)])}), "1.0", "net['1'][0]"),
        (nn.ModuleDict({"a b": nn.Linear(2, 2)}), "a b", "net['a b']"),
        (nn.TransformerEncoderLayer(4, 1), "self_attn.out_proj", "net.self_attn.out_proj"),
        (PLAIN, "0", 'getattr(net, "0")'),
        (PLAIN, "", "net"),
    ],
)
def test_a_path_can_be_typed(module, name, path):
    assert layers.typed_path("net", module, name) == path
    assert eval(path, {"net": module}) is dict(module.named_modules())[name]  # noqa: S307


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "made", [torch.jit.script, lambda net: torch.jit.trace(net, torch.ones(2, 4), check_trace=False)]
)
def test_compiled_modules_keep_their_mode_elsewhere(made):
    module = made(nn.Sequential(nn.Linear(4, 2), nn.Dropout()).train())
    assert layers.is_training(module)
    module.eval()
    assert not layers.is_training(module)
