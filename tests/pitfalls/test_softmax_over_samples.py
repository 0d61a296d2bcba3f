"""Weights (samples, steps) or (samples, experts) whose softmax runs along the samples, in sums over what each has."""

import pytest

from tests.cells import findings_in
from torch_inspector.facts import layer_texts, syntax

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(60, 10)
h, score, gate = x.view(6, 10, 10), nn.Linear(10, 1), nn.Linear(10, 5)
experts = [nn.Linear(10, 3) for _ in range(5)]"""
STEPS = "s = score(h).squeeze(2)\nw = s.softmax({axis})\nloss = ({sum}).square().mean()\nloss.backward()"
EXPERTS = """\
outs = torch.stack([one(x) for one in experts], dim=1)
w = F.softmax(gate(x), dim={axis})
loss = ({sum}).square().mean()
loss.backward()"""
STEP_SUMS = [
    "torch.bmm(w.unsqueeze(1), h).squeeze(1)",
    "F.dropout(w, 0.1)[:, None] @ h",
    "h.mT @ w.unsqueeze(2)",
    "(w.unsqueeze(-1) * h).sum(1)",
    "(h * w[:, :, None]).sum(-2)",
    "torch.einsum('bt,btd->bd', w, h)",
]
EXPERT_SUMS = ["(w.unsqueeze(-1) * outs).sum(1)", "torch.einsum('be,bed->bd', w, outs)"]


def found(lines):
    return findings_in(SETUP, lines, slug="softmax-over-batch", fails=False)


@pytest.mark.parametrize("total", STEP_SUMS)
def test_steps_of_each_sample(total):
    (finding,) = found(STEPS.format(axis=0, sum=total))
    assert (finding.line, finding.severity) == (3, "error")
    assert "`w` runs along dim 0, the 6 samples, so the weights of one sample depend on all others" in finding.message
    assert finding.fix.startswith("w = s.softmax(-1)  # along the steps")


@pytest.mark.parametrize("total", STEP_SUMS)
def test_steps_of_each_sample_that_sum_to_one(total):
    assert not found(STEPS.format(axis=1, sum=total))


@pytest.mark.parametrize("total", EXPERT_SUMS)
def test_experts_of_each_sample(total):
    (finding,) = found(EXPERTS.format(axis=0, sum=total))
    assert "the 60 samples" in finding.message


@pytest.mark.parametrize("total", EXPERT_SUMS)
def test_experts_of_each_sample_that_sum_to_one(total):
    assert not found(EXPERTS.format(axis=1, sum=total))


@pytest.mark.parametrize(
    "total",
    [
        "torch.einsum('tb,tbd->bd', w, h)",  # time first
        "(w.unsqueeze(-1) * h).sum(0)",
        "torch.bmm(w.T[:, None], h.transpose(0, 1))",
        "torch.einsum('tb,tbd->d', w, h)",  # one sample of several heads
    ],
)
def test_time_first(total):
    assert not found(STEPS.format(axis=0, sum=total))


@pytest.mark.parametrize(
    "total",
    [
        "torch.einsum('be,bd->ed', w, x)",  # experts choose their samples
        "w.T @ x",
        "(w.unsqueeze(-1) * x[:, None]).sum(0)",
        "(w.unsqueeze(-1) * outs).sum(1).sum(0)",  # heads that look at one sequence
        "(w.unsqueeze(-1) * outs).sum((0, 1))",
        "w.unsqueeze(-1) * outs",
    ],
)
def test_weights_of_a_set(total):
    assert not found(EXPERTS.format(axis=0, sum=total))


def test_experts_first():
    lines = "w = gate(x).T.softmax(0)\nouts = torch.stack([one(x) for one in experts])\n"
    assert not found(lines + "torch.einsum('eb,ebd->bd', w, outs).square().mean().backward()")
    assert not found(lines + "(w.unsqueeze(-1) * outs).sum(0).square().mean().backward()")


TIMES = """\
rnn, score, out = nn.GRU(10, 8, batch_first={first}), nn.Linear(8, 1), nn.Linear(8, 1)
h, _ = rnn(x.view(12, 5, 10))
a = torch.softmax(score(h), dim=0)
loss = out((a * h).sum(1)).square().mean()
loss.backward()"""


def test_what_a_recurrent_layer_gives_has_time_first_unless_it_is_told():
    assert not found(TIMES.format(first=False))
    assert found(TIMES.format(first=True))


POLICY = """
pi = nn.Linear(5, 4)
def forward(obs):
    return torch.softmax(pi(obs), dim=0)
"""


def test_the_last_axis_is_told_so_that_one_sample_may_come_alone():
    loss = "p = forward(torch.randn(6, 5))\nloss = F.nll_loss(p.log(), torch.randint(0, 4, (6,)))\nloss.backward()"
    (finding,) = findings_in(SETUP, POLICY, loss, slug="softmax-over-batch", fails=False)
    assert "torch.softmax(pi(obs), dim=-1)" in finding.fix
    right = POLICY.replace("dim=0", "dim=-1")
    assert not findings_in(SETUP, right, loss, slug="softmax-over-batch", fails=False)


ATTENTION = """\
q, k = torch.nn.Linear(10, 10), torch.nn.Linear(10, 10)
scores = torch.bmm(q(h), k(h).transpose(1, 2))
w = {weights}
loss = (torch.bmm(w, h) - h).square().mean()
loss.backward()"""


@pytest.mark.parametrize(
    "weights",
    [
        "torch.softmax(scores.view(60, 10), dim={})",
        "torch.softmax(scores.flatten(0, 1) / 3, dim={})",
        "nn.Softmax(dim={})(scores.reshape(-1, 10))",
    ],
)
def test_rows_of_all_samples_in_one_table(weights):
    (finding,) = found(ATTENTION.format(weights=weights.format(0) + ".view(6, 10, 10)"))
    assert "runs along dim 0, the 60 rows of all samples, so the weights of one sample" in finding.message
    assert weights.partition("(scores.")[0].format(-1) in finding.fix
    assert not found(ATTENTION.format(weights=weights.format(-1) + ".view(6, 10, 10)"))


@pytest.mark.parametrize(
    "weights",
    [
        "torch.softmax(scores.transpose(1, 2).reshape(60, 10), dim=-1).view(6, 10, 10)",
        "torch.softmax(scores, dim=1)",
        "torch.stack([torch.softmax(one, dim=0) for one in scores])",
        "torch.softmax(scores.view(6, 100), dim=1).view(6, 10, 10)",
    ],
)
def test_tables_that_are_each_their_own(weights):
    assert not found(ATTENTION.format(weights=weights))


HEADS = """\
to_q, to_k = nn.Linear(12, 8 * {heads}), nn.Linear(12, 8 * {heads})
x, v = torch.randn(6, 7, 12), torch.randn(6, {heads}, 7, 8)
q = to_q(x[:, :{queries}]).view(6, {queries}, {heads}, 8).transpose(1, 2)
k = to_k(x).view(6, 7, {heads}, 8).transpose(1, 2)
scores = q @ k.transpose(-2, -1) / 8**0.5
w = {weights}
out = w @ v
out.square().mean().backward()"""
VIEWS = """\
to_q, to_k, to_v = (nn.Linear(12, 8) for _ in range(3))
target, views = torch.randn(6, 7, 12), torch.randn(6, 4, 5, 12)
scores = to_q(target)[:, None] @ to_k(views).mT / 8**0.5
out = {out}
out.square().mean().backward()"""
FUSED = """\
to_all, x = nn.Linear(12, 96), torch.randn(6, 7, 12)
q, k, v = to_all(x).reshape(6, 7, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
out = {out}
out.square().mean().backward()"""


@pytest.mark.parametrize(
    "out", ["(torch.softmax(scores, 1) @ to_v(views)).sum(1)", "(scores.softmax(1) @ to_v(views)).mean(1)"]
)
def test_views_that_compete_are_no_heads(out):
    assert not found(VIEWS.format(out=out))


def test_heads_of_one_layer_that_share_their_weights():
    fused = FUSED.format(out="{w} @ v").replace("{w}", "torch.softmax((q * 8**-0.5) @ k.mT, dim={})")
    assert found(fused.format(1))
    assert not found(fused.format(-1))


@pytest.mark.parametrize("weights", ["torch.softmax(scores, dim={})", "nn.Dropout(0.1)(nn.Softmax(dim={})(scores))"])
def test_heads_that_share_their_weights(weights):
    (finding,) = found(HEADS.format(weights=weights.format(1), heads=4, queries=7))
    assert "runs along dim 1, the 4 heads, so the weights of one head depend on the others" in finding.message
    assert finding.severity == "hint"
    assert "dim=-1" in finding.fix
    assert not found(HEADS.format(weights=weights.format(-1), heads=4, queries=7))


QUERIES = """\
to_q, to_k, to_v = (nn.Linear(12, 32) for _ in range(3))
norm, rms, turn = nn.LayerNorm(8), nn.RMSNorm(8), torch.randn(7, 8)
x = torch.randn(6, 7, 12)
q, k, v = (part(x).view(6, 7, 4, 8) for part in (to_q, to_k, to_v))
{}
out.square().mean().backward()"""
ROTATE = """\
def rotate(t):
    first, second = t.chunk(2, dim=-1)
    return t * turn.cos() + torch.cat([-second, first], dim=-1) * turn.sin()
q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
q, k = rotate(q), rotate(k)
out = torch.softmax(q @ k.mT / 8**0.5, 1) @ v"""
SPLIT = "q, k, v = (one.transpose(1, 2) for one in (q, k, v))\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{SPLIT}q, k = norm(q), norm(k)\nout = torch.softmax(q @ k.mT, 1) @ v",
        f"{SPLIT}q, k = rms(q), rms(k)\nout = torch.softmax(q @ k.mT, 1) @ v",
        f"{SPLIT}q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)\nout = torch.softmax(q @ k.mT, 1) @ v",
        f"{SPLIT}out = torch.softmax((turn.mean() * q + turn) @ k.mT, 1) @ v",
        ROTATE,
        SPLIT + "w = torch.softmax(torch.einsum('bhqd,bhkd->bhqk', q, k) / 3, 1)\nout = w @ v",
        SPLIT
        + "w = torch.softmax(torch.einsum('bhqd,bhkd->bhqk', q, k), 1)\nout = torch.einsum('bhqk,bhkd->bhqd', w, v)",
        "w = torch.softmax(torch.einsum('bqhd,bkhd->bhqk', q, k) / 3, 1)\nout = torch.einsum('bhqk,bkhd->bqhd', w, v)",
    ],
)
def test_heads_whose_queries_are_normalised_turned_or_summed_by_einsum(text):
    (finding,) = found(QUERIES.format(text))
    assert "runs along dim 1, the 4 heads" in finding.message
    assert not found(QUERIES.format(text.replace(", 1)", ", -1)")))


@pytest.mark.parametrize(
    "text",
    [
        # The axis is one of queries: `einsum` has turned it.
        "s = torch.einsum('bqhd,bkhd->bqhk', q[:, :4], k)\nout = torch.einsum('bqhk,bkhd->bqhd', s.softmax(1), v)",
        f"{SPLIT}w = torch.einsum('bhqd,bhkd->bqhk', q[:, :, :4], k).softmax(1)\nout = w.transpose(1, 2) @ v",
        f"{SPLIT}w = (norm(q) @ norm(k).mT).softmax(1)\nw = w / w.sum(-1, keepdim=True)\nout = w @ v",
    ],
)
def test_queries_that_compete_are_no_heads(text):
    assert not found(QUERIES.format(text))


@pytest.mark.parametrize(
    ("weights", "heads", "queries"),
    [
        ("torch.softmax(scores, dim=1)", 4, 1),
        ("torch.softmax(scores, dim=1)", 1, 7),
        ("torch.softmax(scores, dim=2)", 4, 7),
        ("(lambda s: s / s.sum(-1, keepdim=True))(torch.softmax(scores, dim=1))", 4, 7),
        ("torch.softmax(scores, dim=1)\nv = v / w.sum(-1, keepdim=True)", 4, 7),
        ("torch.softmax(scores.flatten(1, 2), dim=1).view(6, 4, 7, 7)", 4, 7),
    ],
)
def test_what_competes_on_purpose(weights, heads, queries):
    assert not found(HEADS.format(weights=weights, heads=heads, queries=queries))


@pytest.mark.parametrize("softmax", ["F.softmax(att(h))", "nn.Softmax()(att(h))", "F.softmax(att(h), dim=0)"])
def test_an_axis_that_nobody_named_is_told_once(softmax):
    setup = "import warnings\nwarnings.simplefilter('ignore')\nimport torch\nimport torch.nn.functional as F\n"
    setup += "from torch import nn\natt, out, h, y = nn.Linear(8, 1), nn.Linear(8, 2), torch.randn(12, 5, 8), [0] * 12"
    cell = f"w = {softmax}\nloss = F.cross_entropy(out((w * h).sum(1)), torch.tensor(y))\nloss.backward()"
    (finding,) = findings_in(setup, cell, fails=False)
    assert finding.slug == "softmax-over-batch"
    assert "dim=1)" in finding.fix
    (alone,) = findings_in(setup, cell.splitlines()[0], fails=False) or [finding]
    assert "dim=1)" in alone.fix or "nn.Softmax()" in softmax


@pytest.mark.parametrize(
    "out", ["(w @ v).sum(dim=1)", "(w @ q).mean(1, keepdim=True).exp()", "nn.Dropout(0.1)(w @ v).sum(1)"]
)
def test_heads_that_are_shares_of_one_mixture(out):
    mixed = HEADS.format(weights="torch.softmax(scores, dim=1)", heads=4, queries=7).replace("w @ v", out)
    assert not found(mixed)
    assert found(mixed.replace("sum(dim=1)", "sum(dim=-1)")) if "dim=1" in out else True


ONE = """\
one = nn.Linear(10, {outputs})
w = F.softmax({scores}, dim={axis})
loss = ({used}).square().mean()
loss.backward()"""


@pytest.mark.parametrize(
    ("outputs", "scores", "axis", "used", "severity"),
    [
        ("1", "one(x)", 1, "w * x", "warning"),
        ("1", "one(x).tanh() / 3", -1, "w * x", "warning"),
        ("1", "one(h.clone())", 2, "torch.bmm(w.mT, h)", "warning"),
        ("1", "one((score.weight * h).tanh())", 2, "torch.bmm(w.mT, h)", "warning"),
        ("len(experts[:1])", "one(x)", 1, "w * x", ""),
        ("1", "one(x)", 0, "w * x", ""),
        ("1", "one(h).squeeze(-1)", 1, "w[:, :, None] * h", ""),
        ("1", "one(h[:, :1]).view(6, 1)", 1, "w * h[:, 0]", ""),
        ("2", "one(x)", 1, "w[:, :1] * x", ""),
    ],
)
def test_the_score_of_a_layer_with_one_output(outputs, scores, axis, used, severity):
    findings = found(ONE.format(outputs=outputs, scores=scores, axis=axis, used=used))
    of_one = [one for one in findings if "1 long" in one.message]
    assert [one.severity for one in of_one] == ([severity] if severity else [])
    assert all("every result is 1 whatever the layer gives" in one.message for one in of_one)
    assert all(one.message.startswith("Softmax in `w` runs along the last axis of ") for one in of_one)


POOL = """\
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(10, 1)
    def forward(self, x):
        return (F.softmax(self.gate(x), dim=1) * x).sum(1)
class Mixture(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.gate = nn.Linear(10, {k})
        self.experts = nn.ModuleList(nn.Linear(10, 3) for _ in range(k))
    def forward(self, x):
        w = F.softmax(self.gate(x), dim=-1)
        return sum(w[:, i:i + 1] * e(x) for i, e in enumerate(self.experts))
"""
MEMORY = """\
q, out, memory = nn.Linear(10, 10), nn.Linear(20, 3), torch.randn(1, 10)
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(10, 1)
    def forward(self, x):
        att = F.softmax({table}, dim=-1) @ memory
        w = F.softmax(self.score(x), dim=0)
        return out(torch.cat([att, w * x], 1))
loss = Reader()(x).mean()
loss.backward()"""


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (f"{POOL.format(k='k')}loss = (Mixture(1)(x).sum() + Pool()(h).sum()).square()\nloss.backward()", False),
        (f"{POOL.format(k='1')}loss = (Mixture(1)(x).sum() + Pool()(h).sum()).square()\nloss.backward()", True),
        (MEMORY.format(table="q(x) @ memory.t()"), False),
        (MEMORY.format(table="self.score(x)"), True),
    ],
)
def test_layers_are_those_of_their_own_class(cell, told):
    assert any("1 long" in one.message for one in found(cell)) == told


MEMORIES = """\
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.out = nn.Linear(10, 1), nn.Linear(10, 10)
    def forward(self, mem):
        w = F.softmax({scores}, dim=-1)
        return self.out(w.view(len(mem), 1, -1).bmm(mem).squeeze(1))
reader = Reader()
mems = [(h[:, :t]{learned}).tanh() for t in ({lengths})]
"""
LEARN = "loss = sum(F.mse_loss(reader(mem), h[:, 0]) for mem in mems)\nloss.backward()"
GROWING = [
    "self.score(mem.flatten(0, 1)).view(len(mem), 1, -1)",
    "self.score(mem.reshape(-1, 10)).reshape(len(mem), 1, mem.shape[1])",
    "self.score(mem).view(len(mem), 1, -1)",
    "self.score(mem).mT",
    "self.score(mem).squeeze(2)",
]


@pytest.mark.parametrize("learned", ["", " * score.weight"])
@pytest.mark.parametrize("scores", GROWING)
def test_steps_of_which_there_is_one_now(scores, learned):
    assert not found(f"{MEMORIES.format(scores=scores, learned=learned, lengths='1, 3, 2')}{LEARN}")


@pytest.mark.parametrize("scores", ["self.score(mem)", "self.score(mem.flatten(0, 1)).view(len(mem), -1, 1)"])
def test_each_step_alone(scores):
    cell = MEMORIES.format(scores=scores, learned=" * score.weight", lengths="3, 1, 2")
    (finding,) = found(f"{cell}{LEARN}")
    assert "`w` runs along the last axis of (6, " in finding.message


POOLED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(10, 1)
        self.heads = {heads}
    def forward(self, x):
        w = torch.softmax(self.score(x), dim=1)
        h = (w * x).sum(1)
        return torch.cat([{each}], 1)
{net}loss = F.mse_loss({call}(h), torch.rand(6, 8))
loss.backward()"""
LISTED = "nn.ModuleList([nn.Linear(10, n) for n in (1, 3, 4)])"
NAMED = "nn.ModuleDict({str(n): nn.Linear(10, n) for n in (1, 3, 4)})"


@pytest.mark.parametrize(("net", "call"), [("net = Net()\n", "net"), ("", "Net()")])
@pytest.mark.parametrize(
    ("heads", "each"),
    [
        (LISTED, "torch.softmax(head(h), dim=1) for head in self.heads"),
        (NAMED, "torch.softmax(self.heads[n](h), dim=1) for n in self.heads"),
        ("[nn.Sequential(nn.Linear(10, n), nn.Softmax(dim=1)) for n in (1, 3, 4)]", "head(h) for head in self.heads"),
    ],
)
def test_the_softmax_of_another_layer_is_not_named(heads, each, net, call):
    findings = found(POOLED.format(heads=heads, each=each, net=net, call=call))
    assert not [one for one in findings if "`w`" in one.message]


def test_many_softmaxes_are_read_once(monkeypatch):
    counts = [0]
    walk = syntax.walk
    monkeypatch.setattr(syntax, "walk", lambda node: counts.__setitem__(0, counts[0] + 1) or walk(node))
    many = "def more(x):\n" + "".join(f"    x{i} = torch.softmax(x + {i}, -1)\n" for i in range(300))
    layer_texts.read(many)
    assert counts[0] < 1_500
    assert len(layer_texts.read(many).softmaxes) == 300
