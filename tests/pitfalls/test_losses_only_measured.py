"""Losses that nothing is differentiated of: what the text gives them."""

import pytest

from tests.cells import a_notebook

START = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
net, one = nn.Linear(5, 3), nn.Linear(5, 1)
x, y, z = torch.randn(20, 5), torch.randint(0, 3, (20,)), torch.rand(20, 1).round()
ce, bce, soft = nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss(), nn.Softmax(dim=1)
logits = net(x).detach()
opt = torch.optim.SGD(net.parameters(), lr=0.1)"""
SLUGS = ("softmax-before-cross-entropy", "sigmoid-before-bce-logits", "probabilities-in-nll-loss")
EVALUATE = """\
def evaluate(model, loss, batches):
    total = 0.0
    with torch.no_grad():
        for a, b in batches:
            p = F.softmax(model(a), dim=-1)
            total += loss(p, b).item()
    return total
evaluate(net, ce, [(x, y)])"""
TRAINED = """\
for _ in range(3):
    opt.zero_grad()
    ce(net(x), y).backward()
    opt.step()
    with torch.no_grad():
        print(ce(net(x).softmax(1), y))"""
UNDER = """\
def score(a, b):
    out = net(a)
    out = soft(out)
    return ce(out, b)
for _ in range(2):
    opt.zero_grad()
    ce(net(x), y).backward()
    opt.step()
with torch.inference_mode():
    score(x, y)"""


def found(code):
    with a_notebook() as notebook:
        notebook.run(START)
        run = notebook.run(code)
        assert notebook.errors[-1] is None, notebook.errors[-1]
        told = [f for f in run.findings if f.slug in SLUGS]
        for finding in told if "def " not in code else ():
            notebook.run(finding.fix)
            assert notebook.errors[-1] is None, notebook.errors[-1]
        return told


@pytest.mark.parametrize(
    ("code", "slug", "fix"),
    [
        ("p = torch.softmax(logits, dim=1)\nval = ce(p, y)", 0, "val = ce(logits, y)"),
        ("with torch.no_grad():\n    val = ce(soft(net(x)), y).item()", 0, "val = ce(net(x), y).item()"),
        (EVALUATE, 0, "total += loss(model(a), b).item()"),
        (("def score(a, loss):\n    p = net(a).softmax(-1)\n    return loss(p, y)\nwith torch.no_grad():\n"
        "    score(x, nn.CrossEntropyLoss())"), 0, "return loss(net(a), y)"),
        (TRAINED, 0, "print(ce(net(x), y))"),
        (UNDER, 0, "# leave out out = soft(out)"),
        ("s = logits\ns = F.softmax(s, 1)\nloss = F.nll_loss(s, y)", 2, "s = F.log_softmax(s, 1)  # in place of s = "),
        ("val = F.binary_cross_entropy_with_logits(input=torch.sigmoid(one(x)), target=z).item()", 1, "input=one(x)"),
        ("p = one(x).sigmoid()\nval = bce(p, z).item()", 1, "val = bce(one(x), z).item()"),
        ("loss = F.nll_loss(F.softmax(logits, 1), y)", 2, "loss = F.nll_loss(F.log_softmax(logits, 1), y)"),
        ("p = soft(logits)\nloss = nn.NLLLoss()(p, y)", 2, "loss = nn.NLLLoss()(torch.log_softmax(logits, dim=1), y)"),
    ],
)  # fmt: skip
def test_what_is_given_twice(code, slug, fix):
    (finding,) = found(code)
    assert (finding.slug, finding.severity) == (SLUGS[slug], "hint")
    assert fix in finding.fix


@pytest.mark.parametrize("after", ["", "kept = set()\nkept.add(loss)", "n = 16\ntotal = n * loss", "torch.neg(x)"])
def test_what_turns_something_else_says_nothing_of_the_loss(after):
    assert len(found(f"loss = F.nll_loss(soft(logits), y)\n{after}")) == 1


@pytest.mark.parametrize(
    "code",
    [
        "p = soft(logits)\nval = F.nll_loss(p.log(), y)",
        "loss = F.nll_loss(torch.log(soft(logits)), y), F.cross_entropy(soft(logits).log(), y)",
        "right = -F.nll_loss(soft(logits), y)",
        "loss = F.nll_loss(soft(logits), y)\nright = torch.neg(loss)",
        "sign = -1\nprint('loss', sign * F.nll_loss(soft(logits), y))",
        "sign = -1\nloss = F.nll_loss(soft(logits), y)\nright = sign * loss",
        "val = ce(logits, soft(logits * 2))",
        "val = F.kl_div(F.log_softmax(logits, 1), soft(logits), reduction='batchmean')",
        "p = soft(logits)\np = p.log()\nval = ce(p, y)",
        "p = soft(logits)\np.log_()\nval = ce(p, y)",
        "p = soft(logits)\nif len(x) > 5:\n    p = logits\nval = ce(p, y)",
        "p = logits\nif len(x) < 5:\n    p = soft(logits)\nval = ce(p, y)",
        "for p in (logits, soft(logits)):\n    val = ce(p, y)",
        "val = F.binary_cross_entropy(one(x).sigmoid(), z).item()",
        "loss = F.nll_loss(F.log_softmax(logits, 1), y)",
        "val = ce(20 * soft(logits), y)",
        "def cross_entropy(p, y):\n    return -p[range(len(y)), y].log().mean()\nval = cross_entropy(soft(logits), y)",
        ("class Own(nn.CrossEntropyLoss):\n    def forward(self, p, y):\n        return F.nll_loss(p.log(), y)\n"
        "val = Own()(soft(logits), y)"),
        "p = soft(logits)\nacc = (p.argmax(1) == y).float().mean()\nval = ce(logits, y)",
    ],
)  # fmt: skip
def test_what_is_right(code):
    assert found(code) == []


def test_what_an_earlier_cell_made():
    with a_notebook() as notebook:
        notebook.run(START + "\np, q = soft(logits), soft(logits)\nshares = soft(logits)\nraw = soft(logits)")
        run = notebook.run("raw = logits\nval = ce(shares, y)\nother = ce(raw, y)")
        (finding,) = run.findings
        assert (finding.slug, finding.fix) == (SLUGS[0], "val = ce(logits, y)  # the raw scores")
        notebook.run("shares.log_()")
        assert notebook.run("val = ce(shares, y)").findings == ()


def test_a_loss_that_is_kept_with_its_graph():
    with a_notebook() as notebook:
        notebook.run(START)
        run = notebook.run("shares = nn.Sequential(net, soft)\nkept = ce(shares(x), y)")
    (finding,) = run.findings
    assert (finding.slug, finding.subject, finding.severity) == (SLUGS[0], "shares[1]", "error")
