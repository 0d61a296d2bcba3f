"""Copies of trained models that are asked for predictions in train mode."""

import pytest

from tests.cells import findings_in

START = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
def fit(after=lambda: None):
    for _ in range(4):
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()
        after()
class EMA:
    def __init__(self, model):
        self.ema_model = copy.deepcopy(model).requires_grad_(False)
    @torch.no_grad()
    def update(self):
        for e, p in zip(self.ema_model.parameters(), model.parameters()):
            e.lerp_(p, 0.1)
"""
ASK = "model.eval()\nwith torch.no_grad():\n    print(CALLED(x).argmax(1))"


def found(*cells):
    return findings_in(START, *cells, slug="eval-missing")


@pytest.mark.parametrize(
    ("cells", "called"),
    [
        (["ema = EMA(model)\nfit(ema.update)"], "ema.ema_model"),
        (["fit()\nbest = copy.deepcopy(model)"], "best"),
        (["fit()", "best = copy.deepcopy(model)", "fit()"], "best"),
        (["swa = torch.optim.swa_utils.AveragedModel(model)\nfit(lambda: swa.update_parameters(model))"], "swa"),
    ],
)  # fmt: skip
def test_copies_left_in_train_mode(cells, called):
    (finding,) = found(*cells, ASK.replace("CALLED", called))
    assert (finding.severity, finding.subject) == ("hint", called)
    assert found(*cells, f"{called}.eval()", ASK.replace("CALLED", called)) == []


COPY = "fit()\nbest = copy.deepcopy(model)"


@pytest.mark.parametrize(
    "cells",
    [
        # Taken in eval mode; put into train mode; sampled; of a model that is not trained; nothing in it has a mode.
        [COPY.replace("best =", "model.eval()\nbest ="), ASK],
        [COPY, f"best.train()\n{ASK}"],
        [COPY, "model.eval()\nwith torch.no_grad():\n    print(torch.stack([best(x) for _ in range(8)]).var(0))"],
        ["best = copy.deepcopy(model)", ASK],
        ["best = copy.deepcopy(model)\nfit()", ASK],
        ["model = nn.Linear(4, 3)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)", COPY, ASK],
        # Train mode was set for the original; only the sizes, or the statistics, are wanted.
        ["fit()\nmodel.train()\nbest = copy.deepcopy(model)", ASK.removeprefix("model.eval()\n")],
        [COPY, "with torch.no_grad():\n    width = best(x).shape[1]\nprint(width)"],
        [COPY, "with torch.no_grad():\n    for part in x.split(16):\n        best(part)\nbest.eval()"],
        # There to be trained itself.
        [COPY, "print(best(x).shape)", "opt = torch.optim.SGD(best.parameters(), lr=0.1)\nmodel = best\nfit()"],
        # Fresh batch statistics.
        [COPY, ("for m in best.modules():\n    if isinstance(m, nn.BatchNorm1d):\n        m.reset_running_stats()\n"
                "with torch.no_grad():\n    for _ in range(3):\n        best(torch.randn(32, 4))")],
        # A teacher that follows, with noise of its own.
        ["ema = EMA(model)", ("for _ in range(4):\n    with torch.no_grad():\n        wanted = ema.ema_model(x)\n"
                              "    opt.zero_grad()\n    nn.functional.mse_loss(model(x), wanted).backward()\n"
                              "    opt.step()\n    ema.update()")],
    ],
)  # fmt: skip
def test_copies_that_are_right(cells):
    assert found(*[cell.replace("CALLED", "best") for cell in cells]) == []
