"""Results of `to()` and its like that nobody keeps."""

import ast
from unittest import mock

import pytest

from tests.cells import findings_in
from torch_inspector.facts import syntax
from torch_inspector.observe.given_back_as import given_back_as

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
device = torch.device("meta")
x = torch.randn(8, 4)
batch = {"image": torch.randn(2, 3), "more": [torch.ones(2)]}
net = nn.Linear(4, 1)
"""
FUNCTION = """
def epoch(model, loader, device):
    model.to(device)
    model.train()
    for images in loader:
        images.to(device)
        loss = model(images).mean()
"""
SAMPLED = """
def step(rows, sampler):
    t, weights = sampler(len(rows))
    t.to(rows.device)
    return net(rows) * (t / 10)
"""
FOUND = {
    "computed with in a function": ([SAMPLED], (4, "hint")),
    "device": (["x.to(device)\nNone"], (1, "warning")),
    "by name": (["x.to('meta')\ny = 1"], (1, "warning")),
    "by keyword": (["x.to(device=device)\ny = 1"], (1, "warning")),
    "type": (["x.double()\ny = 1"], (1, "warning")),
    "type as argument": (["x.to(torch.float16)\ny = 1"], (1, "warning")),
    "in a dict": (["batch['image'].to(device)\ny = 1"], (1, "warning")),
    "in a loop over keys": (["for key in ('image', 'image'):\n    batch[key].to(device)"], (2, "warning")),
    "in a loop": (["for part in x.split(2):\n    part.half()\n    y = part * 2"], (2, "warning")),
    "without gradients": (["with torch.no_grad():\n    x.double()\n    y = x * 2"], (2, "warning")),
    "timed, used later": (["import time\nt = time.time()\nx.double()\ny = x * 2\nt = time.time() - t"], (3, "warning")),
    "already there": (["x.to('cpu')\ny = 1"], (1, "hint")),
    "shown": (["x.to(device)"], (1, "hint")),
    "in a function": ([FUNCTION], (6, "hint")),
}
QUIET = {
    "computed with in a function, called too": [SAMPLED.replace("(t / 10)", "(t / 10) + t(rows)")],
    "indexed in a function": [SAMPLED.replace("(t / 10)", "t['rows']")],
    "a module": ["net.to('cpu')\ny = 1"],
    "a module in a function": [FUNCTION.replace("        images.to(device)\n", "")],
    "modules in a dict": ["nets = {'a': net}\nfor key in nets:\n    nets[key].to('cpu')\n    nets[key].half()"],
    "kept": ["y = x.to('cpu')"],
    "used": ["print(x.double().sum())"],
    "looked at": ["x.float()"],
    "not known": [
        "class Thing:\n    def to(self, where):\n        self.where = where\nt = Thing()\nt.to('cpu')\ny = 1"
    ],
    "returned": ["def f(v):\n    return v.to('cpu')\ny = f(x)"],
    "of that type already": ["x.to(torch.float32)\ny = 1"],
    "measured": ["import time\nt = time.perf_counter()\nx.double()\nt = time.perf_counter() - t"],
    "warmed up": ["for _ in range(3):\n    x.double()\ny = 1"],
    "refused": ["import contextlib\nwith contextlib.suppress(RuntimeError, AssertionError):\n    x.to('cuda:7')"],
    "profiled": ["with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):\n    x.double()"],
    "a dtype of an array": ["import numpy as np\na = np.ones(3)\na.astype(np.float32)\ny = 1"],
}


def found(*cells):
    return [(one.line, one.severity) for one in findings_in(SETUP, *cells, slug="to-result-discarded", fails=False)]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, expected = FOUND[name]
    assert found(*cells) == [expected]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(*QUIET[name]) == []


PLACES = "parts, pair, d = (x, x + 1), [(x, x), (x, x)], {'a': x, 'b': x}\nlayer = nn.Linear(2, 2)\n"
PLACES += "from torch.utils.data import DataLoader, TensorDataset\nrows = TensorDataset(x, x)\n"
PLACES += "loader = DataLoader(rows, batch_size=4, shuffle=True)\n"
KEPT = {
    "for k, v in d.items():\n    v.to(device)": "d[k] = v.to(device)",
    "for k, v in d.items():\n    print(k)\n    v.to(device, copy=True)": "d[k] = v.to(device, copy=True)",
    "for v in d.values():\n    v.double()": "for key, v in d.items():\n    d[key] = v.double()  # in place of the loop",
    "for p in parts:\n    p.to(device)": "parts = tuple(p.to(device) for p in parts)  # in place of the loop",
    "for i, p in enumerate(parts):\n    0\n    p.half()": "parts = tuple(p.half() for p in parts)  # before the loop",
    "for p in [*parts]:\n    p.to(device)": "p = p.to(device)",
    # A loader or a data set stays one: the loop keeps what it makes of a batch.
    "for a, b in rows:\n    a.to(device)": "a = a.to(device)",
    "for i, (a, b) in enumerate(loader):\n    a.to(device)": "a = a.to(device)",
    "for a, b in pair:\n    a.to(device)": "pair = [(a.to(device), b) for a, b in pair]  # in place of the loop",
    "for p in layer.parameters():\n    p.to(device)": "layer.to(device)  # in place of the loop",
    # What the loop itself goes on with is kept by the variable.
    "for p in parts:\n    p.to(device)\n    print(p.shape)": "p = p.to(device)",
    "for k, v in d.items():\n    v.double()\n    print(v.sum())": "v = v.double()",
    "for p in map(torch.clone, parts):\n    p.to(device)": "p = p.to(device)",
    "x.to(device)\ny = 1": "x = x.to(device)",
}


@pytest.mark.parametrize("source", KEPT)
def test_the_result_goes_back_to_where_it_came_from(source):
    (finding,) = findings_in(SETUP + PLACES, source, slug="to-result-discarded")
    assert finding.fix == KEPT[source]


def test_both_of_a_pair_go_back():
    source = "for a, b in pair:\n    a.to(device)\n    b.long()"
    fixes = {one.fix for one in findings_in(SETUP + PLACES, source, slug="to-result-discarded")}
    assert fixes == {"pair = [(a.to(device), b.long()) for a, b in pair]  # in place of the loop"}


@pytest.mark.parametrize("loop", ["for a, b in loader:", "for i, (a, b) in enumerate(rows):"])
def test_both_of_a_line_are_kept(loop):
    source = f"{loop}\n    a.to(device); b.long()\n    print(a.shape)"
    fixes = {one.fix for one in findings_in(SETUP + PLACES, source, slug="to-result-discarded")}
    assert fixes == {"a, b = a.to(device), b.long()"}


@pytest.mark.parametrize("source", [source for source in KEPT if "for " in source and "print" not in source])
def test_the_fix_leaves_nothing_to_say(source):
    fix = KEPT[source].partition("  #")[0]
    mended = source.rpartition("\n")[0] + "\n    " + fix if "[k]" in fix or fix.startswith(("p =", "a =")) else fix
    assert findings_in(SETUP + PLACES, mended, slug="to-result-discarded") == []


PREPARE = """
def prepare(a, b):
    {}
    return {}
{} = prepare(torch.ones(3, dtype=torch.float64), torch.ones(3))
"""


@pytest.mark.parametrize(
    ("body", "returned", "kept"),
    [
        ("a.float()", "a, b", "u, v"),
        ("b.long(); a.float()", "b, a", "u, v"),
        ("a.to(torch.float32)", "a", "u"),
        ("a = a + 1\n    a.float()", "a, b", "u, v"),
    ],
)
def test_what_a_function_gives_back_as_it_was(body, returned, kept):
    found = findings_in(SETUP, PREPARE.format(body, returned, kept), slug="to-result-discarded", fails=False)
    (finding,) = (one for one in found if one.subject == "a")
    assert (finding.severity, finding.cell) == ("warning", 2)
    assert "`a` is still float64, not float32" in finding.message
    assert finding.fix.startswith("a = a.")


@pytest.mark.parametrize(
    ("body", "returned", "kept"),
    [
        ("a = a.float()", "a, b", "u, v"),
        ("b.float()", "b", "u"),
        ("a.float()\n    a = a.float()", "a, b", "u, v"),
        ("a.float()", "a.float(), b", "u, v"),
        ("if b.sum() > 9: a.float()", "a, b", "u, v"),
        ("a.double()", "a, b", "u, v"),
    ],
)
def test_what_a_function_gives_back_in_another_way(body, returned, kept):
    assert not findings_in(SETUP, PREPARE.format(body, returned, kept), slug="to-result-discarded", fails=False)


CAST = "def prep(x):\n    x.float()\n    return x\n"
OTHERS = {
    "method": "class Trainer:\n    def prep(self, x):\n        return x.double()\n" + CAST + "q = Trainer().prep(x)",
    "of a class": "class Trainer:\n    def prep(self, x):\n        x.float()\n        return x\n"
    "def prep(x):\n    return x.double()\nq = prep(x)",
    "defined anew": CAST + "def prep(x):\n    return x.double()\nq = prep(x)",
    "another function": CAST + "prep = torch.Tensor.double\nq = prep(x)",
    "wrapped": "def doubled(f):\n    return lambda x: f(x).double()\n@doubled\n" + CAST + "q = prep(x)",
    "changed": CAST + "q = prep(x)\nq.data = q.double()",
    "by text": CAST + "q = prep(x)\nglobals()['q'] = x.double()",
    "global": CAST + "def turn():\n    global q\n    q = x.double()\nq = prep(x)\nturn()",
    "not called": CAST + "if len(x) > 99:\n    q = prep(x)",
    "timed": "import time\ndef bench(a):\n    t = time.time()\n    a.to(torch.float16)\n    t = time.time() - t\n"
    "    return a, t\nq, t = bench(x)",
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_kept_may_be_of_another_function_or_changed(name):
    setup = SETUP + "\nq = x = torch.ones(3, dtype=torch.float64)"
    assert not findings_in(setup, OTHERS[name], slug="to-result-discarded", fails=False)


def test_many_statements_are_read_once(monkeypatch):
    asked = mock.Mock(side_effect=syntax.own_expressions)
    monkeypatch.setattr(syntax, "own_expressions", asked)
    tree = ast.parse("def prep(a):\n" + "    a.float()\n" * 200 + "    return a\nq = prep(torch.ones(3))")
    assert {given_back_as(tree, "a", line, {"q": 7}) for line in range(2, 202)} == {7}
    assert asked.call_count < 10


def test_a_module_that_a_function_gives_back():
    made = "def ready(m):\n    m.double()\n    return m\nout = ready(nn.Linear(2, 2))"
    assert not findings_in(SETUP, made, slug="to-result-discarded", fails=False)


def test_the_error_that_follows_names_the_line():
    lost = PREPARE.format("a.float()", "a, b", "u, v")
    (finding,) = findings_in(SETUP, lost, "nn.Linear(3, 1)(u)", slug="dtype-mismatch")
    assert "the result of `a.float()` in line 3 of cell 2 is thrown away" in finding.message


HELPERS = """
def each(batch, device):
    for t in batch:
        t.to(device)
    return batch
def alone(x, device):
    x.to(device)
    return x
class Mover:
    def __init__(self, device):
        self.device = device
    def move(self, batch):
        for t in batch:
            t.to(self.device)
        return batch
def waits(y, device):
    y.to(device)
def timed(y, device):
    import time
    began = time.perf_counter()
    y.to(device)
    began = time.perf_counter() - began
    return y, began
def perhaps(y, device, go=False):
    if go:
        y.to(device)
    return y
def anew(batch, device):
    out = []
    for t in batch:
        t = t.to(device)
        out.append(t)
    return out
rows, pair = [x, x + 1], (x, x)
"""


@pytest.mark.parametrize(
    ("code", "line", "severity", "fix"),
    [
        ("a, b = each(rows, device)", 4, "warning", "batch = [t.to(device) for t in batch]  # in place of the loop"),
        ("y = alone(x, 'meta')", 7, "warning", "x = x.to(device)"),
        ("c = Mover(device).move(pair)", 14, "warning",
         "batch = tuple(t.to(self.device) for t in batch)  # in place of the loop"),
    ],
)  # fmt: skip
def test_what_a_function_throws_away_is_told_where_it_is_given_a_tensor(code, line, severity, fix):
    (finding,) = findings_in(SETUP, HELPERS, code, slug="to-result-discarded")
    assert (finding.cell, finding.line, finding.severity, finding.fix) == (2, line, severity, fix)


@pytest.mark.parametrize(
    "code",
    ["each([net, nn.Linear(2, 2)], device)", "nets = [net]\neach(nets, device)", "each(rows, 'cpu')",
     "each([x.to(device)], device)", "waits(x, device)",
     "timed(x, device)", "perhaps(x, device)", "anew(rows, device)", "alone(net, device)"],
)  # fmt: skip
def test_functions_that_are_given_modules_or_keep_or_measure(code):
    assert not findings_in(SETUP, HELPERS, code, slug="to-result-discarded")


OWNERS = """
class Batch:
    def __init__(self):
        self.x, self.y = torch.ones(3, 2, dtype=torch.float64), torch.ones(3)
        self.net = torch.nn.Linear(2, 2)
    def to(self, device):
        self.x.to(device)
        return self
    def single(self):
        self.x.float()
        return self.x.sum()
    def cast(self):
        self.x.to(torch.float32)
    def kept(self, device):
        self.x.to(device)
        self.x = self.x.to(device)
    def as_it_is(self):
        self.x.double(), self.y.float()
        self.x.double()
        self.y.to("cpu")
    def perhaps(self, go=False):
        if go:
            self.x.float()
    def moved(self, device):
        self.net.to(device)
        self.net.double()
    def timed(self):
        import time
        began = time.perf_counter()
        self.x.float()
        return time.perf_counter() - began
batch = Batch()
"""


@pytest.mark.parametrize(
    ("code", "line", "fix"),
    [
        ("batch.to('meta')", 7, "self.x = self.x.to(device)"),
        ("total = batch.single()", 10, "self.x = self.x.float()"),
        ("batch.cast()", 13, "self.x = self.x.to(torch.float32)"),
    ],
)
def test_what_a_method_throws_away_of_its_own_object(code, line, fix):
    (finding,) = findings_in(SETUP, OWNERS, code, slug="to-result-discarded")
    assert (finding.cell, finding.line, finding.fix) == (2, line, fix)


@pytest.mark.parametrize(
    "code",
    ["batch.to('cpu')", "batch.kept('meta')", "batch.as_it_is()", "batch.perhaps()", "batch.moved('meta')",
     "batch.timed()"],
)  # fmt: skip
def test_methods_that_keep_or_measure_or_have_it_so_already(code):
    assert not findings_in(SETUP, OWNERS, code, slug="to-result-discarded")
