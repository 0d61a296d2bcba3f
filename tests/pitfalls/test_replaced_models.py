"""Models that are built anew in another cell while what was made from the first still works with that."""

import pytest

from tests.cells import findings_in

SETUP = """
from dataclasses import dataclass
from functools import partial
import torch
from torch import nn
torch.manual_seed(0)
def build(width):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 8))
def predictor(net):
    def run(x):
        with torch.no_grad():
            return net(x).argmax(1)
    return run
@dataclass
class Evaluation:
    net: nn.Module
    def __call__(self, x):
        return self.net(x).mean().item()
class Trainer:
    def __init__(self, net):
        self.config = {"net": net}
        self.net = net
x = torch.randn(4, 64)
"""
AGAIN = """
model = build(512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
"""
FIRST = "model = build(256)\n"
FOUND = {
    "closure": ("predict = predictor(model)", AGAIN, "predict"),
    "bound method": ("score = model.forward", AGAIN, "score"),
    "partial": ("infer = partial(nn.Module.__call__, model)", AGAIN, "infer"),
    "object": ("evaluator = Evaluation(model)", AGAIN, "evaluator.net"),
    "used, not trained": ("ev = Evaluation(model)", "model = build(512)\nprint(ev(x))", "ev.net"),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_holder_is_named_and_the_fix_helps(name):
    made, again, holder = FOUND[name]
    (finding,) = findings_in(SETUP, FIRST + made, again, min_bytes=0, fails=False)
    assert (finding.slug, finding.subject, finding.severity) == ("old-model-still-alive", "model", "hint")
    assert f"`{holder}` leads to it" in finding.message
    mended = again.replace("build(512)", f"build(512)\n{finding.fix}", 1) if "del" not in finding.fix else ""
    assert findings_in(SETUP, FIRST + made, mended, min_bytes=0, fails=False) == []


@pytest.mark.parametrize(
    "cells",
    [
        [FIRST + "teacher = model", AGAIN],
        [FIRST + "predict_small = predictor(model)", AGAIN],
        [FIRST + "baseline = Evaluation(model)", AGAIN],
        [FIRST + "runs = [Evaluation(model)]", AGAIN],
        [FIRST + "best_model = model", AGAIN],
        [FIRST + "ev = Evaluation(model)", AGAIN + "ev = Evaluation(model)"],
        [FIRST + "ensemble = nn.ModuleList([model])", AGAIN],
        [FIRST + "evaluator = Evaluation(model)", "other = build(512)\nprint(evaluator(x))"],
        [FIRST + "evaluator = Evaluation(model)", "model = build(512)"],
        [FIRST + "agent = Trainer(model)", AGAIN + "opponent = Trainer(model)\nprint(agent, opponent)"],
        [FIRST + "trainer = Trainer(net=model)", AGAIN + "slow_trainer = Trainer(net=model)\nprint(trainer)"],
        [FIRST + "predict = predictor(model)", AGAIN + "predict_wide = predictor(model)\nprint(predict(x))"],
        [FIRST + "trainers = {'small': Trainer(model)}", AGAIN + "trainers['large'] = Trainer(model)"],
    ],
    ids=[
        "teacher",
        "small",
        "baseline",
        "list",
        "best",
        "anew",
        "ensemble",
        "two names",
        "not used",
        "agent",
        "slow",
        "wide",
        "dict",
    ],
)
def test_silent(cells):
    assert findings_in(SETUP, *cells, min_bytes=0, fails=False) == []


LEARNER = """
class Learner:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
    def fit(self):
        self.opt.zero_grad()
        self.net(x).pow(2).mean().backward()
        self.opt.step()
"""
COMPARED = "agent.fit()\nprint(model(x).mean(), agent.net(x).mean())"


@pytest.mark.parametrize(
    "cells",
    [
        ["model = build(512)  # a baseline without training", COMPARED],
        ["model = build(512)", "print(1)", COMPARED],
        [f"model = build(512)\n{COMPARED}"],
        ["model = build(256)\nmodel.load_state_dict(agent.net.state_dict())",
         "agent.fit()\nfor t, p in zip(model.parameters(), agent.net.parameters()):\n    t.data.lerp_(p.data, 0.1)"],
        ["model = build(256)\nmodel.load_state_dict(agent.net.state_dict())\nagent.fit()"],
        ["model = nn.Linear(512, 1)", "agent.fit()"],
        ["model = build(512)", "agent.fit()"],
    ],
    ids=["baseline", "later", "in one cell", "target", "target in one cell", "another shape", "not told why"],
)  # fmt: skip
def test_a_trainer_of_the_model_before_is_there_on_purpose(cells):
    assert findings_in(SETUP + LEARNER, FIRST, "agent = Learner(model)", *cells, min_bytes=0, fails=False) == []
