"""Losses of probabilities that the text has but that did not run, are something else, or are asked for on purpose."""

import pytest

from tests.cells import a_notebook
from tests.pitfalls.test_losses_only_measured import START, found

BRIER = """\
class Brier(nn.Module):
    def forward(self, p, y):
        return ((p - F.one_hot(y, 3)) ** 2).sum(1).mean()
"""
REPORT = """\
def report(scores):
    if isinstance(bce, nn.BCELoss):
        scores = torch.sigmoid(scores)
        return bce(scores, z)
    return bce(scores, z)
report(one(x))"""
EARLY = """\
def report(scores, loss):
    if not isinstance(loss, nn.BCELoss):
        return loss(scores, z)
    return loss(torch.sigmoid(scores), z)
report(one(x), bce)"""
UNTOLD = """\
def report(scores):
    return loss(torch.sigmoid(scores), z)
loss = nn.BCELoss()
report(one(x).detach())
loss = bce"""
HELD = """\
class Trainer:
    def __init__(self, loss):
        self.loss = loss
    def value(self):
        return self.loss(torch.sigmoid(one(x)), z)
t = Trainer(nn.BCELoss())
t.value()
t.loss = bce"""
CHOSEN = """\
for loss in [Brier(), ce]:
    if isinstance(loss, Brier):
        p = F.softmax(net(x), dim=1)
        print(loss(p, y))
    else:
        print(loss(net(x), y))"""
METER = """\
class Meter:
    def __init__(self):
        self.total, self.n = 0.0, 0
    def add(self, s):
        self.total += F.nll_loss(F.softmax(s, dim=1), y, reduction="sum").item()
        self.n += len(y)
    def value(self):
        return -self.total / self.n
meter = Meter()
meter.add(logits)
print(meter.value())"""

SWAPPED = """\
class Trainer:
    pass
def swap(o, loss):
    o.loss = loss
t = Trainer()
t.loss = nn.BCELoss()
a = t.loss(torch.sigmoid(one(x)), z)
swap(t, bce)"""


@pytest.mark.parametrize(
    "code",
    [
        REPORT,
        EARLY,
        UNTOLD,
        HELD,
        "if len(x) < 5:\n    print(bce(torch.sigmoid(one(x)), z))",
        "len(x) < 5 and bce(torch.sigmoid(one(x)), z)\nval = 0 if len(x) else bce(torch.sigmoid(one(x)), z)",
        "def late(a):\n    print(bce(torch.sigmoid(a), z))\nif len(x) < 5:\n    late(one(x))",
        "for k in range(3):\n    if k >= 0:\n        continue\n    bce(torch.sigmoid(one(x)), z)",
        HELD.replace("t.loss = bce", "t = Trainer(bce)"),
        HELD.replace("t.loss = bce", "u = t\nt = Trainer(bce)\nu.value()"),
        "class Holder:\n    pass\nt = Holder()\nt.loss = nn.BCELoss()\nt.loss(torch.sigmoid(one(x)), z)\nt.loss = bce",
        SWAPPED,
        SWAPPED.replace("    o.loss = loss", "    setattr(o, 'loss', loss)"),
        "def ev(loss=nn.BCELoss()):\n    return loss(torch.sigmoid(one(x)), z)\nloss = bce\nev()",
    ],
)
def test_what_did_not_run(code):
    assert found(code) == []


@pytest.mark.parametrize(
    "code",
    [
        CHOSEN,
        "for loss in (Brier(),):\n    print(loss(soft(logits), y))\nloss = nn.CrossEntropyLoss()",
        "loss = Brier()\nprint(loss(soft(logits), y))\nloss = nn.CrossEntropyLoss()",
        "class Ops:\n    softmax = staticmethod(torch.log_softmax)\nprint(F.nll_loss(Ops.softmax(net(x), 1), y))",
        "class Ops:\n    def sigmoid(self):\n        return one(x)\nprint(bce(Ops().sigmoid(), z))",
        "def score():\n    global ce\n    return ce(soft(logits), y)\nkept, ce = ce, Brier()\nscore()\nce = kept",
        "p = soft(logits)\ndef log():\n    global p\n    p = p.log()\nlog()\nval = F.nll_loss(p, y)",
    ],
)
def test_names_that_mean_something_else(code):
    assert found(f"{BRIER}{code}") == []


@pytest.mark.parametrize(
    "between",
    [
        "torch.log(p, out=p)",
        "torch.log_(p)",
        "p.data.log_()",
        "q = p\nq.log_()",
        "def to_log(t):\n    t.log_()\nto_log(p)",
        "def to_log():\n    p.log_()\nto_log()",
        "p.copy_(logits)",
        "p[:] = logits",
        "for p in [logits]:\n    pass",
        "(p := logits)",
        "with torch.no_grad() as p:\n    p = logits",
    ],
)
def test_what_is_no_longer_what_it_was(between):
    in_function = f"def score():\n    {'p = soft(logits)'}\n" + "\n".join(
        f"    {line}" for line in f"{between}\nreturn F.nll_loss(p, y)".splitlines()
    )
    assert found(f"p = soft(logits)\n{between}\nval = F.nll_loss(p, y)") == []
    assert found(f"{in_function}\nscore()") == []


@pytest.mark.parametrize(
    "code",
    [
        "error = 1 + F.nll_loss(soft(logits), y)",
        "error = 1 - -F.nll_loss(soft(logits), y)",
        "print(F.nll_loss(soft(logits), y, reduction='none').neg())",
        "print(-1 * F.nll_loss(soft(logits), y), F.nll_loss(soft(logits), y, reduction='none').abs())",
        "total = 0\ntotal -= F.nll_loss(soft(logits), y, reduction='sum').item()",
        "a = F.nll_loss(soft(logits), y)\na = -a",
        "a = F.nll_loss(soft(logits), y)\nprint(1 + a, a.abs())",
        "total = 0\nfor _ in range(2):\n    total += F.nll_loss(soft(logits), y)\nprint(-total / 2)",
        "print(nn.NLLLoss(reduction='none')(soft(logits), y))",
        "def neg_conf(s):\n    return F.nll_loss(F.softmax(s, dim=1), y)\nconf = -neg_conf(logits)",
        "print('mean probability, negative:', F.nll_loss(soft(logits), y).item())",
        "def neg_conf(s):\n    return F.nll_loss(F.softmax(s, dim=1), y)\nconf = -neg_conf(net(x))",
        "m = F.nll_loss(soft(net(x)), y)",  # told when it is differentiated
        "m = F.nll_loss(soft(logits), y)",  # the next cell may print -m
        "print(F.nll_loss(soft(logits), y).mul(-1), torch.mul(F.nll_loss(soft(logits), y), -1))",
        "print(F.nll_loss(soft(logits), y) < -0.5, F.nll_loss(soft(logits), y) / -1.0)",
        "risk = F.nll_loss(soft(logits), y)\nrisk += 1",
        "losses = [F.nll_loss(soft(logits), y).item()]\nconf = [-v for v in losses]",
        "loss = F.nll_loss(soft(logits), y)\ndef confidence():\n    return loss\nprint(-confidence())",
        "confidences = []\nconfidences.append(F.nll_loss(soft(logits), y).item())",
        METER,
        METER.replace("total", "loss"),
    ],
)
def test_mean_probabilities_on_purpose(code):
    assert found(code) == []


@pytest.mark.parametrize(
    "code",
    [
        "loss = F.nll_loss(soft(logits), y)",
        "losses = []\nlosses.append(F.nll_loss(soft(logits), y).item())\nprint(sum(losses) / len(losses))",
        "def val_loss():\n    return F.nll_loss(soft(logits), y).item()\nlog = {'loss': val_loss()}",
        "F.nll_loss(soft(logits), y)",
        "print(f'{F.nll_loss(soft(logits), y).item():.3f}')",
        METER.replace("total", "loss").replace("-self", "self"),
    ],
)
def test_losses_by_their_names(code):
    assert [one.slug for one in found(code)] == ["probabilities-in-nll-loss"]


def test_attributes_that_are_given_another_value_later():
    later = "print(t.loss(torch.sigmoid(one(x)), z))"
    swap = SWAPPED.partition("\na =")[0]
    with a_notebook() as notebook:
        for cell in (START, swap.replace("BCELoss", "BCEWithLogitsLoss")):
            notebook.run(cell)
        assert [one.slug for one in notebook.run(later).findings] == ["sigmoid-before-bce-logits"]
        notebook.run("t.loss = nn.BCELoss()")
        assert notebook.run(f"{later}\nt.loss = bce").findings == ()
        notebook.run("t.loss = nn.BCELoss()")
        assert notebook.run(f"{later}\nswap(t, bce)").findings == ()
        assert [one.slug for one in notebook.run(f"t.loss = bce\n{later}").findings] == ["sigmoid-before-bce-logits"]


@pytest.mark.parametrize(
    "between", ["for q in (torch.rand(20, 3),):\n    pass", "def f():\n    global q\n    q = torch.rand(20, 3)\nf()",
                "print(q := torch.rand(20, 3))", "q = torch.rand(20, 3)", "q.log_()"]
)  # fmt: skip
def test_what_earlier_cells_gave_another_value(between):
    with a_notebook() as notebook:
        for cell in (START, "q = F.softmax(logits, dim=1)", between):
            notebook.run(cell)
        assert notebook.run("print(F.cross_entropy(q, y))").findings == ()


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        ("s = net(x)\np = F.softmax(s, dim=1)\ns = s.argmax(1)\nprint(ce(p, y))", "# give the loss the raw"),
        ("s = net(x); p = F.softmax(s, dim=1); s = s.argmax(1); print(F.nll_loss(p, y))", "print(F.nll_loss(p.log()"),
        ("s = logits\np = s.softmax(1)\nprint(p.argmax(1), p[0], p.shape)\nval = ce(p, y)", "val = ce(s, y)"),
        ("for s in (logits, logits):\n    p = s.softmax(1)\n    val = ce(p, y)", "val = ce(s, y)"),
        ("total = 0\nfor _ in range(2):\n    loss = F.nll_loss(soft(logits), y)\n    total += loss.item() * len(y)",
         "loss = F.nll_loss(torch.log_softmax(logits, dim=1), y)"),
        ("wrong, right = F.cross_entropy(soft(logits), y), F.cross_entropy(logits, y)", "wrong, right"),
    ],
)  # fmt: skip
def test_the_fix_works(code, fix):
    (finding,) = found(code)
    assert finding.severity == "hint"
    assert finding.fix.removeprefix("(").startswith(fix)
