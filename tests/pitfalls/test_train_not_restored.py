"""Models that a library hands over in eval mode and that are trained so."""

import pytest

from tests.cells import a_notebook

LIBRARY = """
import torch
from torch import nn


def from_pretrained(rate=0.1):
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(rate), nn.Linear(16, 3)).eval()


def ready(model):
    return model.train()
"""
SETUP = """
import torch
from torch import nn
import modelzoo
torch.manual_seed(0)
x, y = torch.randn(48, 6), torch.randint(0, 3, (48,))
"""
MAKE = "model = modelzoo.from_pretrained()\noptimizer = torch.optim.Adam(model.parameters(), lr=1e-3)"
TRAIN = """
for rows, kinds in zip(x.split(8), y.split(8)):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(rows), kinds).backward()
    optimizer.step()
"""
QUIET = {
    "switched": [MAKE, "model.train()" + TRAIN],
    "switched by the library": [MAKE, "modelzoo.ready(model)" + TRAIN],
    "it drops nothing": [MAKE.replace("()\n", "(0.0)\n", 1), TRAIN],
    "asleep on purpose": [MAKE + "\nmodel.eval()", TRAIN],
    "said so": [MAKE, "# stays in eval mode: the pretrained features are not to be disturbed" + TRAIN],
    "frozen but for the head": [MAKE + "\nmodel[0].requires_grad_(False)\nmodel[2].requires_grad_(False)", TRAIN],
    "one look": [MAKE, "loss = nn.functional.cross_entropy(model(x), y)\nloss.backward()\noptimizer.step()"],
    "only asked": [MAKE, "with torch.no_grad():\n    answers = model(x).argmax(1)"],
}


@pytest.fixture(autouse=True)
def _library(tmp_path, monkeypatch):
    (tmp_path / "modelzoo.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)


def found(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert all(error is None for error in notebook.errors), notebook.errors
        return [f for r in notebook.runs if r for f in r.findings if f.slug == "train-not-restored"]


def test_a_model_that_came_in_eval_mode_is_told_once():
    (finding,) = found(MAKE, TRAIN, TRAIN)
    assert (finding.line, finding.severity, finding.fix) == (4, "hint", "model.train()  # before the loop")
    assert "`model` is trained in eval mode (6 calls)" in finding.message


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


VALIDATED = """
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
def check(net):
    net.eval()
    with torch.no_grad():
        print(net(x).argmax(1).sum().item()){}
for epoch in range(2):
    {}
    for step, (rows, kinds) in enumerate(zip(x.split(8), y.split(8))):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), kinds).backward()
        optimizer.step()
        {}
    check(model)
"""


@pytest.mark.parametrize(
    ("restored", "start", "between", "fix"),
    [
        ("", "model.train()", "step == 2 and check(model)", "net.train()  # at the end of check()"),
        ("", "pass", "pass", "model.train()  # at the start of each training epoch"),
        ("\n    net.train()", "model.train()", "step == 2 and check(model)", ""),
        ("", "model.train()", "pass", ""),
    ],
)
def test_train_goes_where_it_is_missing(restored, start, between, fix):
    with a_notebook() as notebook:
        notebook.run(SETUP.replace("import modelzoo\n", ""))
        run = notebook.run(VALIDATED.format(restored, start, between))
    fixes = [one.fix for one in run.findings if one.slug == "train-not-restored"] if run else []
    assert fixes == ([fix] if fix else [])


def test_an_evaluation_at_the_start_of_each_turn_wakes_the_model_itself():
    cell = VALIDATED.format("", "check(model)", "pass").rpartition("    check(model)")[0]
    (finding,) = found(cell)
    assert finding.fix == "net.train()  # at the end of check()"
    assert found(VALIDATED.format("\n    net.train()", "check(model)", "pass")) == []


GENERATED = """
class Runner:
    def __init__(self, net): self.net, self.opt = net, torch.optim.Adam(net.parameters(), lr=1e-3)
    def validate(self):
        self.net.eval()
        with torch.no_grad():
            return [sum(out.std().item() for out in map(self.net, part.split(16))) for part in x.split(24)]
    def epoch(self):
        self.net.train()
        for step, (rows, kinds) in enumerate(zip(x.split(8), y.split(8))):
            self.opt.zero_grad(); nn.functional.cross_entropy(self.net(rows), kinds).backward(); self.opt.step()
            if step == 2: self.validate()
runner = Runner(nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.5), nn.Linear(16, 3)))
runner.epoch()
"""


def test_an_evaluation_in_a_comprehension_is_called_by_its_function():
    (finding,) = found(GENERATED)
    assert finding.fix == "self.net.train()  # at the end of validate()"


def test_two_calls_of_one_step_are_one_finding():
    pair = GENERATED.replace(
        "nn.functional.cross_entropy(self.net(rows), kinds)",
        "a = self.net(rows)\n            b = self.net(rows)\n            nn.functional.cross_entropy(a + b, kinds)",
    )
    (finding,) = found(pair)
    assert finding.fix == "self.net.train()  # at the end of validate()"


FACTORY = """
def {name}(rate=0.1):
    made = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(rate), nn.Linear(16, 3))
    {last}"""
BUILT = "model = {name}()\noptimizer = torch.optim.Adam(model.parameters(), lr=1e-3)"
ENDS = ["return made.eval()", "made.eval()\n    return made"]
CHOSEN = {
    "a comment": ("build", "return made.eval()  # the batches are too small"),
    "the norms only": ("build", "made[1].eval()\n    return made"),
    "something comes between": ("build", "made.eval()\n    print('statistics stay')\n    return made"),
    "its name says so": ("with_fixed_statistics", "return made.eval()"),
    "its name says that nothing is left to chance": ("deterministic_net", "return made.eval()"),
    "awake": ("build", "return made"),
}


@pytest.mark.parametrize("last", ENDS)
def test_a_function_of_the_notebook_hands_it_out_asleep(last):
    built = BUILT.format(name="build")
    (finding,) = found(FACTORY.format(name="build", last=last), built, TRAIN)
    assert (finding.subject, finding.severity, finding.line) == ("model", "hint", 4)
    assert "as `build()` returned it. 1 BatchNorm1d normalised with running statistics" in finding.message
    assert not found(FACTORY.format(name="build", last=last), built, f"model.train(){TRAIN}")
    frozen = "\nfor one in model[:4]: one.requires_grad_(False)"
    assert not found(FACTORY.format(name="build", last=last), built + frozen, TRAIN)


@pytest.mark.parametrize("case", CHOSEN)
def test_a_function_that_means_it(case):
    name, last = CHOSEN[case]
    assert not found(FACTORY.format(name=name, last=last), BUILT.format(name=name), TRAIN)


GAN = """
G = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
def preview():
    G.eval()
    with torch.no_grad():
        made = G(x[:4])
    {restored}
    return made
def d_step(real):
    opt_d.zero_grad()
    fake = G(torch.randn(len(real), 6)).detach()
    (D(fake).mean() - D(real).mean()).backward()
    opt_d.step()
def g_step():
    opt_g.zero_grad()
    D(G(torch.randn(8, 6))).mean().neg().backward()
    opt_g.step()
"""
GAN_LOOP = """
G.train()
for it in range(20):
    d_step(torch.randn(8, 2))
    g_step()
    if it % 5 == 0:
        preview()
"""


@pytest.mark.parametrize("restored", ["", "G.train()"])
def test_train_goes_into_the_function_that_said_eval(restored):
    with a_notebook() as notebook:
        notebook.run(SETUP.replace("import modelzoo\n", ""))
        notebook.run(GAN.format(restored=restored))
        run = notebook.run(GAN_LOOP)
    found = [one for one in run.findings if one.slug in ("train-not-restored", "eval-without-no-grad")] if run else []
    assert [one.fix for one in found] == ([] if restored else ["G.train()  # at the end of preview()"])
    said = "1 BatchNorm1d normalised with running statistics, which it did not update."
    assert all(one.message.endswith(said) for one in found)


def test_dropout_that_slept_dropped_nothing():
    (finding,) = found(GENERATED)
    assert finding.message.endswith(": 1 Dropout dropped nothing.")


ENCODERS = """
class Pair:
    def __init__(self):
        self.one = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))
        self.two = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.2), nn.Linear(16, 3))
        self.opt = torch.optim.Adam([*self.one.parameters(), *self.two.parameters()])
    def wake(self): self.one.train(); self.two.train()
    def rest(self): self.one.eval(); self.two.eval()
    def lull(self): self.rest()
    def embed(self, rows): return self.one(rows) + self.two(rows)
    def learn(self, rows, kinds):
        self.opt.zero_grad()
        nn.functional.cross_entropy(self.embed(rows), kinds).backward()
        self.opt.step()
    def check(self):
        self.rest()
        with torch.no_grad():
            return sum(self.embed(part).norm().item() for part in x.split(24))
pair = Pair()
def validate(p):
    p.{rest}()
    with torch.no_grad():
        return sum(p.embed(part).norm().item() for part in x.split(24))
"""
PAIR_LOOP = """
pair.wake()
for step, (rows, kinds) in enumerate(zip(x.split(8), y.split(8))):
    pair.learn(rows, kinds)
    if step % 3 == 1:
        {}
"""


@pytest.mark.parametrize(
    ("rest", "call", "owner", "function"),
    [
        ("rest", "validate(pair)", "p", "validate"),
        ("lull", "validate(pair)", "p", "validate"),
        ("rest", "pair.check()", "self", "check"),
    ],
)
def test_train_goes_where_eval_was_asked_for_and_not_where_a_batch_passes(rest, call, owner, function):
    findings = found(ENCODERS.format(rest=rest), PAIR_LOOP.format(call))
    fixes = [f"{owner}.{part}.train()  # at the end of {function}()" for part in ("one", "two")]
    assert [one.fix for one in findings] == fixes
    assert all("self" not in one.message for one in findings)


def test_train_does_not_go_into_the_function_that_trains():
    inline = "pair.rest()\n        with torch.no_grad(): pair.embed(x)"
    assert {one.fix for one in found(ENCODERS.format(rest="rest"), PAIR_LOOP.format(inline))} == {
        "pair.one.train()  # after the evaluation",
        "pair.two.train()  # after the evaluation",
    }
    fit = "\ndef fit(pair):" + PAIR_LOOP.format(inline).replace("\n", "\n    ") + "\nfit(pair)"
    assert {one.fix for one in found(ENCODERS.format(rest="rest"), fit)} == {
        "pair.one.train()  # after the evaluation",
        "pair.two.train()  # after the evaluation",
    }


def test_modes_that_are_set_in_a_comprehension():
    source = ENCODERS.format(rest="rest")
    inline = "[one.eval() for one in (pair.one, pair.two)]; [pair.embed(part).detach() for part in x.split(24)]"
    assert {one.fix for one in found(source, PAIR_LOOP.format(inline))} <= {
        "pair.one.train()  # after the evaluation",
        "pair.two.train()  # after the evaluation",
    }
    within = "def look(p):\n    [one.eval() for one in (p.one, p.two)]\n    with torch.no_grad(): p.embed(x)"
    assert {one.fix for one in found(source, within, PAIR_LOOP.format("look(pair)"))} == {
        "pair.one.train()  # at the end of look()",
        "pair.two.train()  # at the end of look()",
    }


NET = """
def net():
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
"""
LOADED = "model = load(){}\noptimizer = torch.optim.Adam(model.parameters(), lr=1e-3)"


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("m = net()\n    m.eval()\n    return m", ""),
        ("m = net()\n    m.eval()\n    print('loaded')\n    return m", ""),
        ("m = net().eval()\n    return m", ""),
        ('"""Loads the pretrained net, a batch of layers."""\n    m = net()\n    m.eval()\n    return m', ""),
        ("m = net()\n    m = m.eval()\n    return m.to('cpu')", ""),
        ("m = net()\n    m.train(False)\n    return m", ""),
        ("m = net()\n    m.eval()\n    return m, 3", "[0]"),
        ("return {'net': net().eval(), 'size': 3}", "['net']"),
        ("return net().eval()", ""),
    ],
)
def test_a_function_of_the_notebook_that_hands_out_a_model_asleep(body, part):
    (finding,) = found(NET, f"def load():\n    {body}", LOADED.format(part), TRAIN)
    assert (finding.subject, finding.severity) == ("model", "hint")
    assert "as `load()` returned it" in finding.message
    assert not found(NET, f"def load():\n    {body}", LOADED.format(part), "model.train()" + TRAIN)
    frozen = f"def frozen_features():\n    {body}"
    assert not found(NET, frozen, LOADED.format(part).replace("load()", "frozen_features()"), TRAIN)


def test_a_function_that_is_given_the_model_means_it():
    assert not found(NET, "def rest(m):\n    m.eval()\n    print('asleep')\n    return m", "model = rest(net())\n"
                     "optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)", TRAIN)  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        "m = net()\n    # eval mode: running statistics of the big data set\n    m.eval()\n    return m",
        '"""No noise: the batches are tiny, and gradients reproducible."""\n    m = net()\n    m.eval()\n    return m',
        '"""Without dropout."""\n    m = net()\n    m.eval()\n    return m',
        "m = net()  # batch norm is as it was\n    m.eval()\n    print('loaded')\n    return m",
    ],
)
def test_a_function_that_says_why(body):
    assert not found(NET, f"def load():\n    {body}", LOADED.format(""), TRAIN)


def test_a_probe_that_trains_the_last_layer_alone():
    body = "m = net()\n    m.eval()\n    return m"
    probe = LOADED.format("").replace("model.parameters()", "model[4:].parameters()")
    assert not found(NET, f"def load():\n    {body}", probe, TRAIN)
