"""Views, small whole numbers, lost assignments and softmaxes as users write them, and what only looks like them."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Linear(10, 3)
x, y = torch.randn(60, 10), torch.randint(0, 3, (60,))
raw = torch.arange(2 * 8 * 6 * 3).reshape(2, 8, 6, 3)
one = torch.randint(0, 256, (3, 32, 32), dtype=torch.uint8)
two = torch.randint(0, 256, (3, 32, 32), dtype=torch.uint8)
mask = (one > 100).to(torch.uint8)
grid = torch.arange(12).view(3, 4)
good = grid[:, 0] > 2
"""
VIEW = {
    "what is left": ("def turn(t):\n    t = t.view(t.size(1), t.size(0), -1)\n    return t\nturn(raw[0])", 2),
    "a name given anew": ("b = raw\nb = b.float()\nb = b.view(-1, 3, 8, 6)", 3),
    "a parameter given anew": (
        "def first(t):\n    t = t.float()\n    t = t.view(2, 3, 8, 6)\n    return t\nfirst(raw)",
        3,
    ),
    "a map as a row of places": ("m = torch.rand(2, 6, 4, 5)\nplaces = m.view(2, 4 * 5, 6)", 2),
    "a map as what is left": (
        """class Places(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut = nn.Conv2d(3, 8, 4, 4)
    def forward(self, x):
        f = self.cut(x)
        n, c = f.shape[:2]
        return f.view(n, -1, c).mean(1)
cutter = Places()
loss = cutter(torch.rand(2, 3, 20, 16)).square().mean()
loss.backward()""",
        8,
    ),
    "names": ("batch, height, width, channels = raw.shape\nimages = raw.view(batch, channels, height, width)", 2),
    "numbers": ("images = raw.reshape(2, 3, 8, 6)", 1),
    "the same name": ("raw = raw.view(2, 3, 8, 6)", 1),
    "an array": ("a = raw.numpy()\nimages = torch.from_numpy(a).view(-1, 3, 8, 6)", 2),
    "heads": (
        """class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.count = nn.Linear(32, 32), 4
    def forward(self, x):
        n, t, c = x.size()
        return self.q(x).view(n, self.count, t, c // self.count)
steps = torch.randn(2, 10, 32)
heads = Heads()
scores = heads(steps).softmax(-1)""",
        7,
    ),
    "heads on the way to a loss": (
        """class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.count = nn.Linear(32, 32), 4
    def forward(self, x):
        q = self.q(x).view(-1, self.count, x.shape[1], 8).tanh()
        return q.mean()
heads = Heads()
loss = heads(torch.randn(2, 10, 32))
loss.backward()""",
        6,
    ),
    "a lambda": ("front = lambda t: t.reshape(t.shape[0], t.shape[3], t.shape[1], t.shape[2])\nz = front(raw)", 1),
    "an object called at once": (
        "class Front:\n    def __call__(self, t):\n        return t.view(2, 3, 8, 6)\nz = Front()(raw)",
        3,
    ),
    "a function": ("def front(t):\n    n, h, w, c = t.shape\n    return t.reshape(n, c, h, w)\nz = front(raw)", 3),
    "sizes of the tensor": ("t = x.view(x.shape[1], x.shape[0])", 1),
    "size()": ("t = x.reshape(x.size(1), x.size(0))", 1),
    "torch.reshape": ("images = torch.reshape(raw, (2, 3, 8, 6))", 1),
    "a comprehension": ("images = [part.view(3, 8, 6) for part in raw]\nlast = raw[0].view(3, 8, 6)", 1),
    "a layer": (
        """class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.fc = nn.GRU(10, 7), nn.Linear(7, 2)
    def forward(self, x):
        out, _ = self.rnn(x)
        out = out.contiguous().view(4, 5, 7)
        return self.fc(out[:, -1])
tagger = Tagger()
loss = F.cross_entropy(tagger(torch.randn(5, 4, 10)), torch.tensor([0, 1, 0, 1]))
loss.backward()""",
        7,
    ),
}
VIEW_SILENT = {
    "capsules": "caps = nn.Conv2d(1, 16, 3)(torch.rand(2, 1, 6, 6)).view(2, 4, 4, -1)\ncaps.sum().backward()",
    "a map in order": "m = torch.rand(2, 6, 4, 5)\na = m.flatten(2).mT\nb = m.permute(0, 2, 3, 1).reshape(2, -1, 6)",
    "merged heads": "a = torch.rand(2, 4, 7, 4).reshape(2, 28, 4)\nb = torch.rand(2, 4, 7, 8).reshape(2, 28, 8)",
    "a map of one channel": "a = torch.rand(2, 1, 4, 5).view(2, -1, 1)\nb = torch.rand(2, 6, 4, 5).view(2, 6, -1)",
    "a lambda": "swap = lambda t: t.permute(0, 3, 1, 2).reshape(t.shape[0], t.shape[3], -1)\nz = swap(raw)",
    "permuted before": "b = raw\nb = b.permute(0, 3, 1, 2)\nb = b.reshape(2, 3, 8, 6)\nb = 0",
    "in a branch": "b = raw\nif b.dim() == 4:\n    b = b.permute(0, 3, 1, 2)\nb = b.reshape(2, 3, 8, 6)\nb = 0",
    "in a loop": "b = raw\nfor _ in range(2):\n    b = b.reshape(2, 3, 8, 6)\n    b = b.permute(0, 2, 3, 1)\nb = 0",
    "heads in their place": """class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.count = nn.Linear(32, 32), 4
    def forward(self, x):
        n, t, c = x.size()
        return self.q(x).view(n, t, self.count, c // self.count).transpose(1, 2)
steps = torch.randn(2, 10, 32)
heads = Heads()
loss = heads(steps).mean()
loss.backward()""",
    "as many steps as heads": "steps = torch.randn(2, 4, 32)\nheads = steps.view(2, 4, 4, 8)",
    "windows of steps": "steps = torch.randn(2, 64, 32)\nparts = steps.view(2, 4, 16, 32)",
    "permuted": "images = raw.permute(0, 3, 1, 2)\nturned = x.t()",
    "heads": "h = x.view(60, 5, 2)\nback = h.transpose(0, 1).reshape(5, 60, 2)",
    "merged": "flat = raw.view(2, -1)\nrows = raw.reshape(-1, 3)\nagain = rows.view(raw.shape)",
    "a single axis moved": "a = x.view(60, 1, 10).view(1, 60, 10)",
    "windows": "w = torch.randn(4, 16, 3).view(-1, 4, 3)",
    "attention": (
        "attention = nn.MultiheadAttention(32, 4)\nq = torch.randn(5, 8, 32)\n"
        "out, _ = attention(q, q, q)\nout.sum().backward()"
    ),
    "own attention": (
        "proj = nn.Linear(32, 32)\ndef split(q, heads):\n    time, batch, size = q.shape\n"
        "    return q.reshape(time, batch * heads, size // heads).transpose(0, 1)\n"
        "split(proj(torch.randn(5, 8, 32)), 4).sum().backward()"
    ),
    "square": "s = torch.randn(4, 5, 5).view(4, 5, 5)\nt = torch.randn(6, 6).view(6, 6)",
    "numpy": "import numpy as np\na = np.zeros((3, 4)).reshape(2, 6)",
}
WRAPS = {
    "a default": ("def brighter(t, times=2):\n    return t * times\nz = brighter(one)", 2),
    "a difference": ("change = one - two", 1),
    "a function": ("def mse(a, b):\n    return ((a - b) ** 2).float().mean()\ne = mse(one, two)", 2),
    "brighter": ("bright = one + 100", 1),
    "a square": ("energy = one.square().sum()", 1),
    "a product": ("p = one * two", 1),
    "a method": ("d = torch.abs(one.sub(two))", 1),
    "rows": ("k = 4\ne = one[:, k:] - one[:, :-4]", 2),
    "in place": ("more = one.clone()\nmore += two", 2),
    "under its own name": ("less = one.clone()\nless = less - two", 2),
    "16 bits": ("wave = torch.arange(0, 30000, 100, dtype=torch.int16)\npower = wave * wave", 2),
}
WRAPS_SILENT = {
    "another value than the default": "def brighter(t, times=2):\n    return t * times\nz = brighter(mask, times=1)",
    "a default that may be another": (
        "how = {'times': 1}\ndef brighter(t, times=2):\n    return t * times\nz = brighter(one, **how)"
    ),
    "converted": "d = one.float() - two.float()\ne = one.int() - two.int()",
    "masks": "o = 1 - mask\np = mask * 255\nb = mask + mask\nk = one * mask",
    "one side wide": "d = one - two.long()\nf = one * 0.5",
    "on purpose": "d = (one + two) & 255",
    "sums": "s = one.sum() - two.sum()\nm = one.float().mean()",
    "in place, and it fits": "o = one // 2\no += two // 2\nk = one // 2\nk = k + 1",
    "in place, and again": "o = one.clone()\no += two\no = o // 2 + 1\nfor _ in range(3):\n    mask += 1",
    "64 bits": "d = grid - 5\ne = grid * grid",
    "other values": "small = one // 2\nsum_of = small + small",
    "counts": "hits = (one > 3).to(torch.uint8)\ntotal = hits - hits",
}
WRAPS["an object that is called"] = (
    "class Brighter:\n    def __call__(self, t):\n        return t + 200\nmore = Brighter()\nlight = more(one)",
    3,
)
WRAPS_SILENT["given anew"] = "d = one\nd = d.float()\ne = d - 300\nif len(e) > 9:\n    d = two\nf = d - 1\nd = 0"
LOST = {
    "a mask that the call makes": ("def wipe(t, m):\n    t[m][:, 1] = 0\nwipe(grid, grid[:, 0] > 2)", 2),
    "a list given to a function": ("def put(t, rows):\n    t[rows][0] = 3\nput(grid, [0, 2])", 2),
    "a mask": ("grid[grid > 5][0] = 9", 1),
    "a named mask": ("grid[good][1] = 2", 1),
    "a list": ("grid[[0, 1]][0] = 1", 1),
    "numbers": ("rows = torch.tensor([0, 2])\ngrid[rows][:, 1] += 1", 2),
    "in place": ("grid[good].fill_(0)", 1),
    "a loop": ("for i in range(2):\n    grid[good][i] = 0", 2),
    "a function": ("def clip(t):\n    t[t > 3][0] = 0\n    return t\nclip(grid)", 2),
    "a local": ("def clip():\n    t = net(x)\n    t[t < 3][0] = 0\n    return t\nclip()", 3),
    "a parameter": ("with torch.no_grad():\n    net.weight[net.bias > 0][:, 0] = 0", 2),
}
LOST_SILENT = {
    "a mask that is a number by then": "def w(t, m):\n    m = int(m.sum())\n    t[m][:1] = 0\nw(grid, grid[:, 0] > 6)",
    "a lambda that gives the copy back": "wiped = (lambda t, m: t[m].fill_(0))(grid, good)",
    "views": "grid[1][2] = 0\ngrid[:, 0][1] = 7\ngrid[0].fill_(2)\ngrid[..., 1][0] = 3",
    "one index": "grid[grid > 9] = -1\ngrid[good, 0] = 5\ngrid[good] += 1",
    "a kept copy": "part = grid[good]\npart[0] = 3",
    "containers": "d = {'a': grid}\nd['a'][good] = 1\nrows = [grid, grid]\nk = 1\nrows[k][0] = 2",
    "a counter": "i = 1\ngrid[i][0] = 3",
    "a kept result": "part = grid[good].add_(1)\ntotal = grid[good].mul_(2).sum()",
    "a module list": "layers = nn.ModuleList([net])\nwith torch.no_grad():\n    layers[0].weight[0] = 1",
    "a nested dict": "state = {'a': {'b': 1}}\nstate['a']['b'] = 2",
}
AXIS = {
    "a function": ("p = F.softmax(net(x))", 1),
    "three axes": ("s = torch.randn(3, 4, 5)\nr = F.log_softmax(s)", 2),
    "a layer": ("m = nn.Sequential(net, nn.Softmax())", 1),
    "in forward": (
        "class M(nn.Module):\n    def forward(self, x):\n        return F.softmax(net(x))\nM()(x)",
        3,
    ),
}
AXIS_SILENT = {
    "named": "p = F.softmax(net(x), dim=1)\nq = F.log_softmax(net(x), -1)\nm = nn.Softmax(dim=1)\nn = nn.LogSoftmax(1)",
    "torch": "p = torch.softmax(net(x), 1)\nq = net(x).softmax(-1)",
    "own": "def softmax(t):\n    return t.exp() / t.exp().sum()\np = softmax(x)",
    "options": "how = {'dim': 1}\np = F.softmax(net(x), **how)",
}
LEGACY = {
    "a list": ("t = torch.Tensor([1, 2, 3])", 1),
    "nested": ("t = torch.Tensor([[1, -2], [3, 4]])", 1),
    "a number": ("t = torch.Tensor(5)", 1),
    "a name": ("label = 3\nt = torch.LongTensor(label)", 2),
    "a named list": ("ids = [1, 2]\nt = torch.Tensor(ids)", 2),
    "a function": ("def make(k):\n    return torch.Tensor(k)\nt = make(4)", 2),
}
LEGACY_SILENT = {
    "floats": "t = torch.Tensor([1.0, 2.5])\nu = torch.FloatTensor([1, 2])",
    "sizes": "t = torch.Tensor(2, 3)",
    "a parameter": "class L(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.w = nn.Parameter(torch.Tensor(4))\nL()",
    "filled": "t = torch.Tensor(3).fill_(0)",
    "an array": "t = torch.Tensor(x.numpy())",
    "the right one": "t = torch.tensor([1, 2, 3])\nok = isinstance(t, torch.Tensor)",
}
COLUMNS = {
    "a comprehension": ("m = torch.cat([x[:, k] for k in range(3)], dim=-1)", 1),
    "a generator": ("m = torch.cat(tuple(x[:, k] for k in (0, 1)), -1)\nn = torch.cat([x[:, 0], x[:, 1]], -1)", 2),
    "a function": (
        "def pick(t, which):\n    return torch.cat([t[:, k] for k in which], dim=-1)\np = pick(x, [1, 2])",
        2,
    ),
}
COLUMNS_SILENT = {
    "stacked": "m = torch.stack([x[:, k] for k in range(3)], dim=-1)",
    "kept axis": "m = torch.cat([x[:, k:k + 1] for k in range(3)], dim=-1)",
    "along the rows": "m = torch.cat([x[:, k] for k in range(3)])",
    "batches": "m = torch.cat([net(x)[:, 0] for _ in range(2)], dim=-1)",
    "added axis": "m = torch.cat([x[:, k, None] for k in range(3)], dim=-1)",
    "three axes": "m = torch.cat([raw[:, :, 0], raw[:, :, 1]], dim=-1)",
}
TABLES = (
    ("legacy-tensor-constructor", LEGACY, LEGACY_SILENT),
    ("slices-cat-flattens", COLUMNS, COLUMNS_SILENT),
    ("view-where-permute-meant", VIEW, VIEW_SILENT),
    ("uint8-arithmetic-wraps", WRAPS, WRAPS_SILENT),
    ("assignment-to-indexed-copy", LOST, LOST_SILENT),
    ("implicit-softmax-dim", AXIS, AXIS_SILENT),
)


def found(slug, source):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(source)
        assert notebook.errors == [None, None]
        return [finding for finding in run.findings if finding.slug == slug]


@pytest.mark.filterwarnings("ignore:Implicit dimension")
@pytest.mark.parametrize(
    ("slug", "name", "case"), [(slug, name, case) for slug, bad, _ in TABLES for name, case in bad.items()]
)
def test_found_at_its_line(slug, name, case):
    source, line = case
    (finding,) = found(slug, source)
    assert (finding.cell, finding.line) == (2, line), name
    assert finding.fix


@pytest.mark.parametrize(
    ("slug", "name", "source"), [(slug, name, source) for slug, _, good in TABLES for name, source in good.items()]
)
def test_what_only_looks_like_it(slug, name, source):
    assert found(slug, source) == [], name


def test_whole_numbers_may_be_meant_as_floats():
    (finding,) = found("legacy-tensor-constructor", "t = torch.Tensor([[0], [0], [1]])")
    first, _, remark = finding.fix.partition("  # ")
    assert first == "torch.tensor([[0], [0], [1]])"
    assert "dtype=torch.float32" in remark


def test_text_alone_is_a_hint():
    local = "def front(t):\n    t = t.flip(0)\n    n, h, w, c = t.shape\n    return t.view(n, c, h, w)\nfront(raw)"
    (finding,) = found("view-where-permute-meant", local)
    assert finding.severity == "hint"
    local = LOST["a local"][0].replace("t = net(x)", "t, _ = x.sort()")
    (finding,) = found("assignment-to-indexed-copy", local)
    assert finding.severity == "hint"


def test_a_prediction_of_a_softmax_along_the_samples():
    source = "with torch.no_grad():\n    probs = F.softmax(net(x), dim=0)\n    pred = probs.argmax(dim=1)"
    assert found("softmax-over-batch", source) == []
    source += "\n    right = (pred == y).sum()"
    (finding,) = found("softmax-over-batch", source)
    assert (finding.line, finding.severity) == (3, "hint")
    assert found("softmax-over-batch", source.replace("dim=0", "dim=1")) == []
    assert found("softmax-over-batch", source.replace("net(x)", "torch.rand(60, 3)")) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("print(q.shape)", True),
        ("q = q / q.sum(1, keepdim=True)", False),
        ("q /= q.sum(1, keepdim=True)", False),
        ("q.div_(q.sum(1, keepdim=True))", False),
        ("q = F.normalize(q, p=1, dim=1)", False),
    ],
)
def test_a_prediction_of_what_was_made_anew_since_the_softmax(change, told):
    make = "scores = net(x).detach()\nq = F.softmax(scores, dim=0)\n"
    plain = f"{make}{change}\nconf, label = q.max(1)"
    inside = f"{make}def acc(q):\n    {change}\n    return (q.argmax(1) == y).sum()\nacc(q)"
    assert [bool(found("softmax-over-batch", one)) for one in (plain, inside)] == [told, told]
