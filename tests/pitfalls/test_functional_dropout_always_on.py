"""`F.dropout` in the code of models: what is said, and where nothing is."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """
import torch
from torch import nn
from torch.nn import functional
import torch.nn.functional as F
from torch.nn.functional import dropout as drop
torch.manual_seed(0)
rows = torch.ones(8, 20)
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(20, 3)
    def forward(self, x):
        {body}
net = Net()
"""
HELPER = """
def thin(x):
    return functional.dropout2d(x, 0.5)
class Part(nn.Module):
    def body(self, x):
        return thin(x)
    def forward(self, x):
        return self.body(x)
net = nn.Sequential(nn.Linear(20, 3), Part())
"""
ASK = """
def predict(model, x):
    model.eval()
    with torch.no_grad():
        return model(x)
answer = predict(net, rows)
"""
TRAIN = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(rows).pow(2).mean().backward()
    optimizer.step()
"""
SAMPLE = """
def sample(model, x, count=10):
    with torch.no_grad():
        return torch.stack([model(x) for _ in range(count)]).std(0)
net.eval()
spread = sample(net, rows)
"""
ATTENTION = """
class Heads(nn.Module):
    def __init__(self, rate=0.2):
        super().__init__()
        self.qkv, self.rate, self.thin = nn.Linear(20, 60), rate, nn.Dropout(rate)
    def forward(self, x):
        q, k, v = self.qkv(x)[None].chunk(3, -1)
        return {body}
net = Heads({rate})
"""


def net(body):
    return NET.format(body=body)


def attention(call, rate=0.2):
    return ATTENTION.format(body=call, rate=rate)


def found(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert all(error is None for error in notebook.errors), notebook.errors
        slug = "functional-dropout-always-on"
        return [(f.line, f.severity) for r in notebook.runs if r for f in r.findings if f.slug == slug]


FOUND = {
    "plain": ([net("return self.out(F.dropout(x, p=0.4))"), ASK], [(7, "error")]),
    "default probability": ([net("return F.dropout(self.out(x))"), ASK], [(7, "error")]),
    "full name": ([net("return torch.nn.functional.dropout(self.out(x), .5)"), ASK], [(7, "error")]),
    "imported name": ([net("return drop(self.out(x), .5)"), ASK], [(7, "error")]),
    "after training": ([net("return F.dropout(self.out(x), .5)"), TRAIN, ASK], [(7, "error")]),
    "no gradients, no eval": (
        [net("return F.dropout(self.out(x), .5)"), TRAIN, "with torch.no_grad():\n    y = net(rows)"],
        [(7, "warning")],
    ),
    "a layer made in the pass": ([net("return nn.Dropout(0.5)(self.out(x))"), ASK], [(7, "error")]),
    "a variable for it": ([net("thin = nn.Dropout(0.5); return self.out(thin(x))"), ASK], [(7, "error")]),
    "attention": ([attention("F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate)"), ASK], [(8, "error")]),
    "attention by place": (
        [attention("functional.scaled_dot_product_attention(q, k, v, None, 0.2)"), ASK],
        [(8, "error")],
    ),
    "attention with the rate of a layer": (
        [attention("F.scaled_dot_product_attention(q, k, v, dropout_p=self.thin.p)"), TRAIN, ASK],
        [(8, "error")],
    ),
    "told to": ([net("return F.dropout(self.out(x), .5, training=True)"), ASK], [(7, "hint")]),
    "told to by place": ([net("return F.dropout(self.out(x), .5, True)"), ASK], [(7, "hint")]),
    "same cell": ([net("return F.dropout(self.out(x), .5)") + "y = net.eval()(rows)"], [(7, "error")]),
}
QUIET = {
    "told": [net("return F.dropout(self.out(x), .5, training=self.training)"), ASK],
    "told by place": [net("return F.dropout(self.out(x), .5, self.training)"), ASK],
    "told to, with a remark": [net("return F.dropout(self.out(x), .5, training=True)  # in eval mode, too"), ASK],
    "told to, for a spread": [net("return F.dropout(self.out(x), .5, True)"), ASK + "print(answer.std(0))"],
    "told to, sampled": [net("return F.dropout(self.out(x), .5, training=True)"), SAMPLE],
    "told to, trained": [net("return F.dropout(self.out(x), .5, training=True)"), TRAIN],
    "told to, under a test of an argument": [
        net("return F.dropout(self.out(x), .5, training=True) if noisy else self.out(x)").replace(
            "forward(self, x)", "forward(self, x, noisy=False)"
        ),
        ASK.replace("model(x)", "model(x, noisy=True)"),
    ],
    "told not to": [net("return F.dropout(self.out(x), training=False)"), ASK],
    "under a test": [net("if self.training:\n            x = F.dropout(x, .5)\n        return self.out(x)"), ASK],
    "in an expression": [net("return self.out(F.dropout(x, .5) if self.training else x)"), ASK],
    "never dropping": [net("return F.dropout(self.out(x), p=0.0)"), ASK],
    "only trained": [net("return F.dropout(self.out(x), .5)"), TRAIN],
    "sampled": [
        net("return F.dropout(self.out(x), .5)"),
        "net.eval()\nwith torch.no_grad():\n    y = torch.stack([net(rows) for _ in range(20)]).mean(0)",
    ],
    "sampled in a function": [
        net("return F.dropout(self.out(x), .5)"),
        SAMPLE,
    ],
    "a function for training data": [
        net("return self.out(x)"),
        "def corrupt(x):\n    return F.dropout(x, .3)\nnoisy = corrupt(rows)\nnet.eval()\ny = net(noisy)",
    ],
    "a branch that is not taken": [
        net("return self.out(F.dropout(x, .5) if self.noisy else x)"),
        "net.noisy = False",
        ASK,
    ],
    "a layer made in the pass and told": [net("return nn.Dropout(0.5).train(self.training)(self.out(x))"), ASK],
    "a layer made in a pass only where it trains": [
        net("return nn.Dropout(0.5)(self.out(x)) if self.training else self.out(x)"),
        ASK,
    ],
    "a layer that is kept": [
        net("if not hasattr(self, 'thin'): self.thin = nn.Dropout(0.5)\n        return self.thin(self.out(x))"),
        TRAIN,
        ASK,
    ],
    "attention that is told": [
        attention("F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate if self.training else 0.0)"),
        ASK,
    ],
    "attention without dropout": [attention("F.scaled_dot_product_attention(q, k, v, is_causal=True)"), ASK],
    "attention with a rate of 0": [
        attention("F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate)", rate=0.0),
        ASK,
    ],
    "attention that is given its rate": [
        "def attend(q, k, v, rate):\n    return F.scaled_dot_product_attention(q, k, v, dropout_p=rate)",
        attention("attend(q, k, v, self.rate * self.training)"),
        ASK,
    ],
    "attention that only trains": [attention("F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate)"), TRAIN],
    "off by default": [net("return F.alpha_dropout(self.out(x), .5)"), ASK],
    "a layer": ["net = nn.Sequential(nn.Linear(20, 3), nn.Dropout(0.5))", ASK],
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, expected = FOUND[name]
    assert found(*cells) == expected


def test_helpers_and_methods_are_followed():
    ask = "net.eval()\nimport warnings\nwith warnings.catch_warnings(action='ignore'):\n    y = net(rows)"
    assert found(HELPER, ask) == [(3, "error")]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


def test_random_numbers_are_the_same():
    import torch

    numbers = []
    for watched in (True, False):
        cells = (SETUP, net("return F.dropout(self.out(x), .5)"), "y = net.eval()(rows)")
        if watched:
            with a_notebook() as notebook:
                for source in cells:
                    notebook.run(source)
                numbers.append(notebook.shell.user_ns["y"])
        else:
            names = {"__name__": "__main__"}
            exec("\n".join(cells), names)  # noqa: S102
            numbers.append(names["y"])
    assert torch.equal(*numbers)


def test_attention_is_mended_by_its_probability():
    with a_notebook() as notebook:
        for source in (SETUP, attention("F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate)"), ASK):
            run = notebook.run(source)
        (finding,) = run.findings
        assert finding.fix == "dropout_p=self.rate if self.training else 0.0"


def test_random_numbers_of_a_device_count(monkeypatch):
    import torch

    from torch_inspector.observe import dropping

    device = torch.Generator()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "default_generators", (device,))
    state = dropping.random_state()
    assert not dropping.has_drawn(state)
    torch.rand(1, generator=device)
    assert dropping.has_drawn(state)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert not dropping.has_drawn(state)


@pytest.mark.parametrize(
    "body",
    ["return x.sum(1) + F.dropout(self.out(x), .5).sum(1)", "x = F.dropout(self.out(x), .5)\n        return x * 2",
     "x = F.dropout(self.out(x), training=True, p=.5)\n        return x * 2"],
)  # fmt: skip
def test_the_fix_is_the_statement(body):
    def found(code):
        return findings_in(SETUP, code, ASK, slug="functional-dropout-always-on", fails=False)

    (finding,) = found(NET.format(body=body))
    assert "training=self.training" in finding.fix
    first, *others = body.split("\n")
    assert found(NET.format(body="\n".join([finding.fix, *others]))) == []
    assert finding.fix.partition("F.")[0] == first.partition("F.")[0]


ENCODER = """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.p, self.off, self.always = nn.Linear(20, 3), 0.2, 0.0, True
    def noise(self, x):
        return F.dropout(x, 0.2)
    @property
    def rate(self):
        return 0.2 if self.training else 0.0
    def forward(self, x):
        {body}
        return self.out(x) + torch.randn(3)
net = Encoder()
"""


@pytest.mark.parametrize(
    "body",
    [
        "if self.training: x = self.noise(x)",
        "x = self.noise(x) if self.training else x",
        "on = self.training\n        if on: x = self.noise(x)",
        "rate = self.p if self.training else 0.0\n        x = F.dropout(x, rate)",
        "x = F.dropout(x, p=self.rate)",
        "x = F.dropout(x, self.off)",
        "if not self.training: return self.out(x) + torch.randn(3)\n        x = F.dropout(x, 0.2)",
        "if self.always: x = F.dropout(x, 0.2, training=True)",
        "x = F.dropout(x, 0.2, training=True) if self.always else x",
    ],
)
def test_silent_where_others_draw_too(body):
    assert found(ENCODER.format(body=body), ASK) == []
    assert found(ENCODER.format(body=body).replace(" + torch.randn(3)", ""), ASK) == []


@pytest.mark.parametrize(
    ("body", "severity"), [("x = self.noise(x)", "warning"), ("if self.always: x = self.noise(x)", "hint"),
                           ("if self.always: x = F.dropout(x, 0.2)", "hint")]
)  # fmt: skip
def test_others_draw_too(body, severity):
    assert [one[-1] for one in found(ENCODER.format(body=body), ASK)] == [severity]


def test_the_fix_calls_the_module_as_its_method_does():
    cell = net("return self.out(F.dropout(x))").replace("self", "me")
    (finding,) = findings_in(SETUP, cell, ASK, slug="functional-dropout-always-on")
    assert finding.fix == "return me.out(F.dropout(x, training=me.training))"
