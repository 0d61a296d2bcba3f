"""What losses over classes are given: probabilities, raw scores, a softmax over the batch."""

import pytest

from tests.cells import a_notebook
from tests.fakes import a_backward, a_run, a_step, a_witness
from torch_inspector.facts import PatternFact
from torch_inspector.pitfalls.loss.probabilities_in_nll_loss import check as nll
from torch_inspector.pitfalls.loss.sigmoid_before_bce_logits import check as logits
from torch_inspector.pitfalls.loss.softmax_over_batch import check as over_batch

SETUP = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Linear(10, 5)
x, y = torch.randn(60, 10), torch.randint(0, 5, (60,))
yes = (y > 2).float()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
NLL = {
    "in parts": (
        (
            "probs = torch.cat([F.softmax(net(x[:30]), 1), F.softmax(net(x[30:]), 1)])\nloss = F.nll_loss(probs, y)\n"
            "loss.backward()"
        ),
        2,
        "`loss` was given probabilities",
    ),
    "a permuted input": (
        (
            "rnn, head = nn.LSTM(10, 4, bidirectional=True, batch_first=True), nn.Linear(8, 5)\n"
            "both = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)\n"
            "out = head(rnn(x.view(6, 10, 10))[0])\nloss = F.nll_loss(out.view(-1, 5), y)\nloss.backward()\nboth.step()"
        ),
        4,
        "raw scores",
    ),
    "softmax": ("probs = F.softmax(net(x), dim=-1)\nloss = F.nll_loss(probs, y)\nloss.backward()", 2, "`probs`"),
    "kept only": ("probs = F.softmax(net(x), dim=-1)\nloss = F.nll_loss(probs, y)", 2, "`probs`"),
    "divergence": (
        "t = torch.rand(60, 5).softmax(1)\np = net(x).softmax(1)\nloss = F.kl_div(p, t)\nloss.backward()",
        3,
        "`kl_div` of `loss` was given probabilities from softmax in `p`",
    ),
    "divergence of two": (
        "t = net(x + 1).softmax(1)\nloss = nn.KLDivLoss(reduction='sum')(net(x).softmax(1), t)\nloss.backward()",
        2,
        "`kl_div`",
    ),
    "exp of logs": ("p = F.log_softmax(net(x), 1).exp()\nloss = nn.NLLLoss()(p, y)\nloss.backward()", 2, "`p`"),
    "sigmoid": ("p = torch.sigmoid(net(x))\nloss = nn.NLLLoss()(p, y)\nloss.backward()", 2, "`p`"),
    "scores in another order": (
        "loss = F.nll_loss(net(x) @ torch.eye(5), y)\nloss.backward()\nopt.step()",
        1,
        "raw scores",
    ),
    "raw": ("out = net(x)\nloss = nn.NLLLoss()(out, y)\nloss.backward()\nopt.step()", 2, "raw scores in `out`"),
    "pixels": ("p = net(x).view(6, 5, 2, 5).softmax(1)\nl = F.nll_loss(p, y.view(6, 2, 5))\nl.backward()", 2, "`p`"),
    "a layer": ("m = nn.Sequential(net, nn.Softmax(1))\nloss = F.nll_loss(m(x), y)\nloss.backward()", 2, "`m[1]`"),
    "a class": (
        (
            "class Trainer:\n    def __init__(self):\n        self.criterion = nn.NLLLoss()\n"
            "    def step(self, x, y):\n"
            "        p = net(x).softmax(1)\n        loss = self.criterion(p, y)\n        loss.backward()\n"
            "        return loss.item()\nTrainer().step(x, y)"
        ),
        6,
        "`p`",
    ),
    "a helper": (
        "def compute(x, y):\n    return F.nll_loss(torch.softmax(net(x), 1), y)\nloss = compute(x, y)\nloss.backward()",
        3,
        "`nll_loss` of `loss`",
    ),
    "letters": (
        (
            "p = net(x).softmax(1).view(12, 5, 5)\nn = torch.full((5,), 12)\n"
            "loss = F.ctc_loss(p, y[:10].view(5, 2) % 4 + 1, n, n // 6)\nloss.backward()"
        ),
        3,
        "`ctc_loss`",
    ),
}
SPELL = "n = torch.full((5,), 12)\n"
for made in ("net(x).view(12, 5, 5)", "net(x.view(5, 12, 10)).transpose(0, 1)"):
    NLL[f"letters, raw {len(made)}"] = (
        f"{SPELL}out = {made}\nloss = F.ctc_loss(out, y[:10].view(5, 2), n, n // 6)\nloss.backward()\nopt.step()",
        3,
        "`ctc_loss` of `loss` was given raw scores in `out`",
    )
NLL_SILENT = {
    "letters": (
        f"{SPELL}out = net(x).log_softmax(1).view(12, 5, 5)\n"
        "F.ctc_loss(out, y[:10].view(5, 2) % 4 + 1, n, n // 6).backward()\nopt.step()"
    ),
    "a divergence": "t = torch.rand(60, 5).softmax(1)\nF.kl_div(F.log_softmax(net(x), 1), t).backward()",
    "a log in a divergence": "t = torch.rand(60, 5)\nF.kl_div((net(x).softmax(1) + 1e-9).log(), t).backward()",
    "a target that learns": "F.kl_div(torch.rand(60, 5).log(), net(x).softmax(1), reduction='sum').backward()",
    "two of them": "p = net(x)\nF.kl_div(p.log_softmax(1), p.flip(1).softmax(1), reduction='sum').backward()",
    "what only calculates so": "t = torch.rand(60, 5)\n(t - t * net(x).softmax(1)).sum().backward()",
    "logs": "loss = F.nll_loss(F.log_softmax(net(x), 1), y)\nloss.backward()\nopt.step()",
    "a layer of logs": "m = nn.Sequential(net, nn.LogSoftmax(1))\nnn.NLLLoss()(m(x), y).backward()\nopt.step()",
    "a log by hand": "loss = F.nll_loss(torch.log(net(x).softmax(1) + 1e-9), y)\nloss.backward()",
    "an attack": "x.requires_grad_()\nloss = -F.nll_loss(net(x), y)\nloss.backward()\nx.requires_grad_(False)",
    "logs in another order": (
        "l = F.nll_loss(F.log_softmax(net(x), 1) @ torch.eye(5)[[4, 0, 1, 2, 3]], y)\nl.backward()\nopt.step()"
    ),
    "logs in another order, turned": (
        "l = F.nll_loss((torch.eye(5) @ F.log_softmax(net(x), 1).T).T, y)\nl.backward()\nopt.step()"
    ),
    "own logs in another order": (
        "s = net(x)\nl = F.nll_loss((s - s.logsumexp(1, True)) @ torch.eye(5), y)\nl.backward()\nopt.step()"
    ),
    "letters in another order": (
        f"{SPELL}out = net(x).view(12, 5, 5).log_softmax(2) @ torch.eye(5)\n"
        "F.ctc_loss(out, y[:10].view(5, 2) % 4 + 1, n, n // 6).backward()\nopt.step()"
    ),
    "own normalisation": "s = net(x)\nl = F.nll_loss(s - s.logsumexp(1, keepdim=True), y)\nl.backward()\nopt.step()",
    "policy gradient": "p = F.log_softmax(net(x), 1) * torch.rand(60, 1)\nF.nll_loss(p, y).backward()\nopt.step()",
    "for reading": "s = net(x)\nprobs = s.softmax(1)\nloss = F.cross_entropy(s, y)\nloss.backward()\nopt.step()",
    "no grad": "with torch.no_grad():\n    loss = F.nll_loss(net(x).log_softmax(1), y)",
}
LOGITS = {
    "a layer": (
        (
            "m = nn.Sequential(nn.Linear(10, 1), nn.Sigmoid())\nfor _ in range(5):\n"
            "    loss = nn.BCEWithLogitsLoss()(m(x), yes[:, None])\n    loss.backward()"
        ),
        3,
        "`m[1]`",
    ),
    "a function": ("p = net(x)[:, 0].sigmoid()\nloss = nn.BCEWithLogitsLoss()(p, yes)\nloss.backward()", 2, "`p`"),
    "weighted": (
        (
            "p = net(x)[:, 0].sigmoid()\ntwo = torch.tensor(2.0)\n"
            "lost = F.binary_cross_entropy_with_logits(p, yes, pos_weight=two)\n"
            "lost.backward()"
        ),
        3,
        "`lost`",
    ),
    "softmax": (
        (
            "t = F.one_hot(y, 5).float()\np = F.softmax(net(x), 1)\nloss = F.binary_cross_entropy_with_logits(p, t)\n"
            "loss.backward()"
        ),
        3,
        "softmax",
    ),
    "by hand": (
        "p = 1 / (1 + torch.exp(-net(x)[:, 0]))\nloss = nn.BCEWithLogitsLoss()(p, yes)\nloss.backward()",
        2,
        "`p`",
    ),
    "margin": ("p = net(x)[:, 0].sigmoid()\nloss = F.soft_margin_loss(p, yes * 2 - 1)\nloss.backward()", 2, "`p`"),
    "many labels": (
        "p = net(x).sigmoid()\nloss = F.multilabel_soft_margin_loss(p, F.one_hot(y, 5))\nloss.backward()",
        2,
        "logsigmoid",
    ),
    "in forward": (
        (
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.fc = nn.Linear(10, 1)\n"
            "    def forward(self, x):\n        return torch.sigmoid(self.fc(x)).squeeze(-1)\nmodel = Net()\n"
            "out = model(x)\nloss = nn.BCEWithLogitsLoss()(out, yes)\nloss.backward()"
        ),
        9,
        "`out`",
    ),
}
LOGITS_SILENT = {
    "a bounded score": "s = 6 / (1 + torch.exp(-net(x)[:, 0]))\nnn.BCEWithLogitsLoss()(s, yes).backward()",
    "an inverse": "s = 1 / (1 + net(x)[:, 0].square())\nnn.BCEWithLogitsLoss()(s, yes).backward()",
    "scores": "loss = nn.BCEWithLogitsLoss()(net(x)[:, 0], yes)\nloss.backward()",
    "probabilities": "loss = nn.BCELoss()(net(x)[:, 0].sigmoid(), yes)\nloss.backward()",
    "a gate": "g = nn.Linear(10, 10)\nnn.BCEWithLogitsLoss()(net(x * g(x).sigmoid())[:, 0], yes).backward()",
    "swish": "s = net(x)\nnn.BCEWithLogitsLoss()((s * s.sigmoid())[:, 0], yes).backward()",
    "votes": "nn.BCEWithLogitsLoss()(net(x).sigmoid().sum(1), yes).backward()",
    "soft targets": "s = net(x)\nnn.BCEWithLogitsLoss()(s, net(x).sigmoid().detach()).backward()",
    "logsigmoid": "F.logsigmoid(net(x)).mean().neg().backward()",
    "cosines": "a = F.normalize(net(x)) * 20\nnn.BCEWithLogitsLoss()(a[:, 0], yes).backward()",
}
BATCH = {
    "an attention": (
        (
            "a = x.view(6, 10, 10)\nw = torch.softmax(net(a) @ net(a).transpose(1, 2) / 3, dim=0)\n"
            "loss = (F.dropout(w, 0.1) @ a).square().mean()\nloss.backward()"
        ),
        3,
        "`w` runs along dim 0, the 6 samples, so the weights of one sample depend on all others",
    ),
    "nll": ("lp = F.log_softmax(net(x), dim=0)\nloss = F.nll_loss(lp, y)\nloss.backward()", 2, "`lp`"),
    "cross-entropy": ("p = F.softmax(net(x), dim=0)\nloss = F.cross_entropy(p, y)\nloss.backward()", 2, "`p`"),
    "one-hot": (
        "lp = F.log_softmax(net(x), dim=0)\nloss = -(F.one_hot(y, 5) * lp).sum(1).mean()\nloss.backward()",
        2,
        "`lp`",
    ),
    "squares": (
        "p = F.softmax(net(x), dim=0)\nloss = F.mse_loss(p, F.one_hot(y, 5).float())\nloss.backward()",
        2,
        "`p`",
    ),
    "a distribution": (
        "p = F.softmax(net(x), dim=-2)\nloss = -torch.distributions.Categorical(p).log_prob(y).mean()\nloss.backward()",
        2,
        "60 samples",
    ),
    "an index": (
        (
            "def step():\n    p = F.softmax(net(x), dim=0)\n    loss = -p[torch.arange(60), y].log().mean()\n"
            "    loss.backward()\nstep()"
        ),
        2,
        "`p`",
    ),
    "a layer": (
        (
            "policy = nn.Sequential(net, nn.Softmax(dim=0))\npred = policy(x)\n"
            "loss = -torch.log(pred.gather(1, y[:, None])).mean()\nloss.backward()"
        ),
        3,
        "`pred` from `policy[1]`",
    ),
    "kept only": ("lp = F.log_softmax(net(x), dim=0)\nloss = F.nll_loss(lp, y)", 2, "`lp`"),
    "steps of each sample": (
        "h = x.view(6, 10, 10)\nw = F.softmax(nn.Linear(10, 1)(h), dim=0)\nnet((w * h).sum(1)).mean().backward()",
        3,
        "`w` runs along dim 0, the 6 samples, so the weights of one sample depend on all others",
    ),
    "steps, merged": (
        "lp = F.log_softmax(net(x.view(6, 10, 10)), dim=1)\nloss = F.nll_loss(lp.view(-1, 5), y)\nloss.backward()",
        2,
        "`lp` runs along dim 1, 10 long; `nll_loss` then reads 5 classes along dim 2",
    ),
    "one output of a binary loss": (
        "p = nn.Linear(10, 1)(x).softmax(1)\nloss = F.binary_cross_entropy(p.squeeze(), yes)\nloss.backward()",
        2,
        "every result is 1 whatever the model gives",
    ),
    "one score each step": (
        "h = x.view(6, 10, 10)\nw = nn.Linear(10, 1)(h).softmax(2)\nloss = net((w * h).sum(1)).mean()\nloss.backward()",
        3,
        "the last axis of (6, 10, 1), which is 1 long",
    ),
    "steps, permuted": (
        (
            "lp = F.log_softmax(net(x.view(6, 10, 10)), dim=0)\nloss = F.nll_loss(lp.transpose(-1, 1), y.view(6, 10))\n"
            "loss.backward()"
        ),
        2,
        "runs along dim 0, 6 long; `nll_loss` then reads 5 classes along dim 2",
    ),
}
BATCH_SILENT = {
    "steps weighed": "h = x.view(6, 10, 10)\nw = nn.Linear(10, 1)(h).softmax(1)\n(w * h).sum(1).mean().backward()",
    "one sample of one": "F.cross_entropy(nn.Linear(10, 1)(x[:1]), y[:1] * 0).backward()",
    "one expert": "g = nn.Linear(10, 1)(x).softmax(-1)\n(g * net(x)).sum(1).mean().backward()",
    "steps merged": "lp = net(x.view(6, 10, 10)).log_softmax(2)\nF.nll_loss(lp.flatten(0, 1), y).backward()",
    "steps permuted": "lp = net(x.view(6, 10, 10)).mT.log_softmax(1)\nF.nll_loss(lp, y.view(6, 10)).backward()",
    "classes turned": "lp = net(x.view(6, 10, 10)).log_softmax(-1)\nF.nll_loss(lp.mT, y.view(6, 10)).backward()",
    "time in front": "h = x.view(10, 6, 10)\nw = nn.Linear(10, 1)(h).softmax(0)\n(w * h).sum(0).mean().backward()",
    "prototypes": (
        "p = net.weight[:, None]\nd = (x[None] - p).square().sum(-1, keepdim=True)\n"
        "((-d).softmax(0) * x[None]).sum(1).mean().backward()"
    ),
    "attention of each": "a = x.view(6, 10, 10)\nb = (net(a) @ net(a).mT).softmax(-1) @ a\nb.mean().backward()",
    "attention over the queries": "a = x.view(6, 10, 10)\nb = (net(a) @ net(a).mT).softmax(1) @ a\nb.mean().backward()",
    "attention of one sample": "b = (net(x) @ net(x).T).softmax(0) @ x\nb.mean().backward()",
    "experts first": "g = net(x).T[..., None].softmax(0)\nb = (g * torch.rand(5, 60, 3)).sum(0)\nb.mean().backward()",
    "classes": "loss = F.nll_loss(F.log_softmax(net(x), dim=1), y)\nloss.backward()",
    "one sample": "loss = F.nll_loss(F.log_softmax(net(x[0]), dim=0), y[0])\nloss.backward()",
    "attention over rows": "a = net(x).softmax(0)\nloss = F.mse_loss(a.T @ x, torch.zeros(5, 10))\nloss.backward()",
    "time first": (
        "s = nn.Linear(10, 1)(x.view(12, 5, 10)).squeeze(-1)\nlp = s.log_softmax(dim=0)\n"
        "loss = -lp.gather(0, y[:5][None] * 2).mean()\nloss.backward()"
    ),
    "texts and images": (
        "alike = net(x[:20]) @ net(x[20:40]).T\nn = torch.arange(20)\n"
        "loss = F.nll_loss(alike.log_softmax(0), n) + F.cross_entropy(alike, n)\nloss.backward()"
    ),
    "turned": "lp = F.log_softmax(net(x).T, dim=0).T\nloss = F.nll_loss(lp, y)\nloss.backward()",
    "entropy over the batch": "p = net(x).softmax(0)\nloss = (p * p.log()).sum(0).mean()\nloss.backward()",
    "clusters first": "r = (net(x).T).log_softmax(0)\nloss = -(torch.rand(5, 60) * r).sum(1).mean()\nloss.backward()",
    "a listwise ranking": "s = nn.Linear(10, 1)(x)\nloss = -(s.log_softmax(0) * yes[:, None]).sum()\nloss.backward()",
}


def found(slug, source):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(source)
        assert notebook.errors == [None, None]
        return [finding for finding in run.findings if finding.slug == slug]


EXPERTS = "w = nn.Linear(10, 3)(x).softmax(-1)\nps = torch.stack([net(x * i).softmax(-1) for i in range(3)], 1)\n"
FOCAL = "p = net(x).softmax(1)\nce = F.nll_loss(p, y, reduction='none')\npt = torch.exp(-ce)\n"
NLL.update(
    {
        "focal, of no logarithm": (FOCAL + "loss = ((1 - pt) ** 2 * ce).mean()\nloss.backward()", 4, "`p`"),
        "focal, kept apart": (FOCAL + "loss = ((1 - pt.detach()) ** 2 * ce).mean()\nloss.backward()", 4, "`p`"),
        "a sum that begins with 0": (
            "p = net(x).softmax(1)\nloss = 0\nloss = loss + F.nll_loss(p, y)\nloss.backward()\nprint(len(y) + 1)",
            3,
            "`p`",
        ),
        "experts": (
            EXPERTS + "p = (w.unsqueeze(-1) * ps).sum(1)\nloss = F.nll_loss(p, y)\nloss.backward()",
            4,
            "probabilities from softmax in `p`",
        ),
        "experts in a product": (
            EXPERTS + "p = torch.bmm(w[:, None], ps).squeeze(1)\nloss = F.nll_loss(p, y)\nloss.backward()",
            4,
            "`p`",
        ),
        "two, averaged": (
            "p = (net(x).softmax(1) + net(-x).softmax(1)) / 2\nloss = F.nll_loss(p, y)\nloss.backward()",
            2,
            "`p`",
        ),
        "all, averaged": (
            "p = sum(net(x * i).softmax(1) for i in range(3)) / 3\nloss = F.nll_loss(p, y)\nloss.backward()",
            2,
            "`p`",
        ),
    }
)
PICKS = (
    "p = net(x).softmax(1)\ne = F.nll_loss(p, y, reduction='none')\n{}\nopt.zero_grad()\nloss.backward()\nopt.step()"
)
NLL.update(
    {
        f"as it is: {loss}": (PICKS.format(f"loss = {loss}"), 3, "the loss falls below zero")
        for loss in (
            "F.nll_loss(p, y) + 1e-8",
            "(e + 1e-12).mean()",
            "torch.zeros(()) + F.nll_loss(p, y)",
            "F.nll_loss(p, y) * torch.tensor(2.0)",
            "torch.stack([F.nll_loss(p, y), F.mse_loss(net(x), x[:, :5])]).mean()",
        )
    }
)
NLL["without its sign"] = (PICKS.format("loss = F.nll_loss(p, y).abs()"), 3, "training makes that number small")
PY = "p = net(x).softmax(1)\npy = -F.nll_loss(p, y, reduction='none')\n"
NLL_SILENT.update(
    {
        "focal, of what is picked": PY + "loss = -(py.log() * (1 - py) ** 2).mean()\nloss.backward()",
        "focal, by value": PY.replace("net(x).softmax(1)", "F.softplus(net(x))\np = p / p.sum(1, keepdim=True)")
        + "loss = -(py.log() * (1 - py) ** 2).mean()\nloss.backward()",
        "a power": PY + "loss = ((1 - py.clamp_min(1e-6) ** 0.7) / 0.7).mean()\nloss.backward()",
        "picked, with a name": "nll = F.nll_loss(net(x).softmax(1), y, reduction='none')\n"
        "loss = -(-nll).log().mean()\nloss.backward()",
        "distance to 1": "loss = 1 + F.nll_loss(net(x).softmax(1), y)\nloss.backward()",
        "distance to 1, later": "e = F.nll_loss(net(x).softmax(1), y, reduction='none')\n"
        "loss = (1.0 + e).mean()\nloss.backward()",
        "distance to 1, of a variable": "nll = F.nll_loss(net(x).softmax(1), y)\nloss = 1 + nll\nloss.backward()",
        "turned, of a variable": "nll = F.nll_loss(net(x).softmax(1), y)\nloss = -torch.log(-nll)\nloss.backward()",
        "by a factor": "py = F.nll_loss(net(x).softmax(1), y, reduction='none') * -1\nloss = -py.log().mean()\n"
        "loss.backward()",
        **{
            f"computed of it: {loss}": PICKS.format(f"loss = {loss}")
            for loss in (
                "F.nll_loss(p, y)\nloss += 1",
                "torch.add(F.nll_loss(p, y), 1.0)",
                "(torch.ones_like(e) + e).mean() * 4",
                "(e - (-1)).abs().mean()",
                "F.relu(e.add(0.9)).mean()",
                "F.mse_loss(e, -torch.ones(60))",
                "F.l1_loss(e, -torch.ones(60))",
                "-torch.log1p(e).mean()",
                "1 - F.nll_loss(p, y).abs()",
                "sum((1 + e) * (1 + e)) + sum(1 + e)",
                "torch.tensor(1.0) + F.nll_loss(p, y)",
                "(-e).sum()\nloss = -loss",
            )
        },
        "experts, then the log": EXPERTS + "p = (w.unsqueeze(-1) * ps).sum(1).log()\nF.nll_loss(p, y).backward()",
        "experts, then a safe log": EXPERTS
        + "p = torch.bmm(w[:, None], ps)[:, 0]\nF.nll_loss((p + 1e-9).log(), y).backward()",
        "experts of logs": EXPERTS.replace(
            "ps = torch.stack([net(x * i).softmax(-1)", "ps = torch.stack([net(x * i).log_softmax(-1)"
        )
        + "p = (w.unsqueeze(-1) * ps).sum(1)\nF.nll_loss(p, y).backward()",
        "two, averaged in logs": "p = (net(x).softmax(1) + net(-x).softmax(1)) / 2\nF.nll_loss(p.log(), y).backward()",
        "logs that are weighed": "p = net(x).softmax(1) * net(x).log_softmax(1)\nF.nll_loss(p, y).backward()",
        "a factor below zero": "F.nll_loss(net(x).softmax(1) * net(-x).softmax(1) * -torch.ones(5), y).backward()",
    }
)


@pytest.mark.parametrize(
    ("slug", "case"),
    [
        (slug, case)
        for slug, cases in (
            ("probabilities-in-nll-loss", NLL),
            ("sigmoid-before-bce-logits", LOGITS),
            ("softmax-over-batch", BATCH),
        )
        for case in cases.values()
    ],
)
def test_found_where_the_loss_is_made(slug, case):
    source, line, said = case
    (finding,) = found(slug, source)
    assert (finding.cell, finding.line, finding.severity) == (2, line, "error")
    assert said in finding.message
    assert finding.fix


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        (PICKS.format("loss = -F.nll_loss(p, y)"), "loss = F.nll_loss(p.clamp_min(1e-9).log(), y)  # "),
        (PICKS.format("loss = (-e).mean()"), "# F.nll_loss of F.log_softmax("),
        ("(-nn.NLLLoss()(net(x).softmax(1), y)).backward()\nopt.step()", "(nn.NLLLoss()(net(x).softmax(1).clamp_min("),
    ],
)
def test_probabilities_that_training_makes_small_may_be_meant(code, fix):
    (finding,) = found("probabilities-in-nll-loss", code)
    assert finding.severity == "hint"
    assert finding.fix.startswith(fix)
    assert "training makes that number small" in finding.message
    mended = code.replace("loss = -F.nll_loss(p, y)", finding.fix) if "loss = -" in code else finding.fix
    assert found("probabilities-in-nll-loss", mended) == []


TURNED = """
maker, x = nn.Linear(4, 10), x.requires_grad_({data})
other = torch.optim.SGD([x] if {data} else maker.parameters(), 0.1)
loss = -F.nll_loss(net({given}).softmax(1), y)
loss.backward()
other.step()
"""


@pytest.mark.parametrize(
    "code",
    [
        "conf = -F.nll_loss(net(x).softmax(1), y)\nval_loss = F.nll_loss(net(x).softmax(1), y).abs()",
        TURNED.format(data=True, given="x"),
        TURNED.format(data=False, given="maker(x[:, :4])"),
    ],
)
def test_what_is_turned_and_trains_no_whole_model(code):
    assert found("probabilities-in-nll-loss", code) == []


@pytest.mark.parametrize("name", NLL_SILENT)
def test_logarithms_are_right(name):
    assert found("probabilities-in-nll-loss", NLL_SILENT[name]) == []


@pytest.mark.parametrize("name", LOGITS_SILENT)
def test_sigmoids_elsewhere_are_right(name):
    assert found("sigmoid-before-bce-logits", LOGITS_SILENT[name]) == []


@pytest.mark.parametrize("name", BATCH_SILENT)
def test_other_softmaxes_along_the_first_axis_are_right(name):
    assert found("softmax-over-batch", BATCH_SILENT[name]) == []


@pytest.mark.parametrize(
    ("check", "name"),
    [(nll, "probabilities-in-nll"), (logits, "sigmoid-before-logits"), (over_batch, "softmax-over-batch")],
)
def test_a_pattern_with_little_in_it_is_no_reason_to_fail(check, name):
    for nodes, shapes in (((), ()), (("nll_loss",), ()), (("nll_loss", "AddmmBackward0"), ((),))):
        run = a_run(a_backward(witness=a_witness(patterns=(PatternFact(name, nodes, shapes),))), a_step())
        assert len(list(check(run))) <= 1


CTC = {
    "out = {}\nloss = F.ctc_loss(out, t, n, n // 6)": (
        "net(x).view(12, 5, 5)",
        "out.log_softmax(dim=2)  # in place of out in ctc_loss",
    ),
    "loss = F.ctc_loss({}, t, n, n // 6)": (
        "net(x.view(5, 12, 10)).transpose(0, 1)",
        "net(x.view(5, 12, 10)).transpose(0, 1).log_softmax(dim=2)  # in place of",
    ),
    "p = {}\nloss = nn.CTCLoss()(p.transpose(0, 1), t, n, n // 6)": (
        "net(x.view(5, 12, 10)).softmax(-1)",
        "p = net(x.view(5, 12, 10)).log_softmax(-1)",
    ),
    "model = nn.Sequential(net, nn.Softmax(2))\nloss = F.ctc_loss(model({}), t, n, n // 6)": (
        "x.view(12, 5, 10)",
        "model[1] = nn.LogSoftmax(dim=2)",
    ),
}


@pytest.mark.parametrize("text", CTC)
def test_the_fix_of_ctc_is_along_the_classes(text):
    made, fix = CTC[text]
    code = f"{SPELL}t = y[:10].view(5, 2) % 4 + 1\n{text.format(made)}\nloss.backward()\nopt.step()"
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = [one for one in notebook.run(code).findings if one.slug == "probabilities-in-nll-loss"]
    assert finding.fix.startswith(fix)
    assert "one number per sample" not in finding.message


def test_the_fix_of_a_mixture_takes_the_logarithm_last():
    (finding,) = found("probabilities-in-nll-loss", NLL["experts"][0])
    assert finding.fix == "p.clamp_min(1e-9).log()  # in place of p in nll_loss"
    mended = NLL["experts"][0].replace("nll_loss(p,", f"nll_loss({finding.fix.partition('  #')[0]},")
    assert found("probabilities-in-nll-loss", mended) == []


@pytest.mark.parametrize(("shape", "per"), [("", "sample"), (".view(1, -1, 3).permute(0, 2, 1)", "position")])
def test_what_one_number_is_picked_for(shape, per):
    more = "import torch.nn.functional as F\nscores, goal = torch.randn(8, 3, requires_grad=True), torch.arange(8) % 3"
    given = "goal.view(1, -1)" if shape else "goal"
    code = f"{more}\nloss = F.nll_loss(scores.softmax(1){shape}, {given})\nloss.backward()"
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = [one for one in notebook.run(code).findings if one.slug == "probabilities-in-nll-loss"]
    assert f"it only picks one number per {per}," in finding.message


POINTER = "gate = torch.sigmoid(net(x)[:, :1])\nuniform = torch.full((60, 5), 0.2)\n"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("probs = gate * F.softmax(net(x), -1) + (1 - gate) * uniform\nloss = F.nll_loss(probs, y)", 1),
        ("probs = (net(x) ** 2 + 0.1)\nprobs = probs / probs.sum(1, keepdim=True)\nloss = nn.NLLLoss()(probs, y)", 1),
        ("probs = gate * F.softmax(net(x), -1) + (1 - gate) * uniform\nloss = F.nll_loss(probs.log(), y)", 0),
        ("probs = F.gumbel_softmax(net(x), hard=True) * 1.0\nloss = 1 + F.nll_loss(probs, y)", 0),
        ("odds = torch.relu(net(x)) + 1\nloss = F.nll_loss(odds, y)", 0),
    ],
    ids=["pointer", "by-hand", "logarithm", "one-hot", "no-distribution"],
)
def test_what_sums_to_one_is_known_by_its_numbers(code, told):
    findings = found("probabilities-in-nll-loss", f"{POINTER}{code}\nopt.zero_grad()\nloss.backward()\nopt.step()")
    assert len(findings) == told
    assert all("probabilities (each row sums to 1) in `probs`" in one.message for one in findings)


def test_the_fix_of_a_softmax_inside_of_the_loss_is_the_statement():
    (finding,) = found("probabilities-in-nll-loss", "loss = F.nll_loss(F.softmax(net(x), dim=1), y)\nloss.backward()")
    assert finding.fix.startswith("loss = F.nll_loss(F.log_softmax(net(x), dim=1), y)  # or the raw scores")


@pytest.mark.parametrize(
    "loss",
    [
        "F.mse_loss(p, {})",
        "F.binary_cross_entropy(p, {})",
        "-({} * p.log()).sum(1).mean()",
        "-(net(x).log_softmax(0) * {}).sum(-1).mean()",
    ],
)
def test_weights_of_a_set_that_a_teacher_gave(loss):
    cell = f"p = net(x).softmax(0)\nloss = {loss}\nloss.backward()"
    assert not found("softmax-over-batch", cell.format("torch.rand(60, 5).softmax(0)"))
    assert found("softmax-over-batch", cell.format("torch.rand(60, 5).softmax(1)"))


def test_a_statement_that_only_applies_softmax_is_taken_out():
    source = (
        "net = nn.Linear(4, 3)\nx, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])\ndef step():\n"
        "    out = net(x)\n    out = F.softmax(out, dim=1)\n    loss = criterion(out, y)\n"
        "    loss.backward()\ncriterion = nn.CrossEntropyLoss()\nstep()"
    )
    (finding,) = found("softmax-before-cross-entropy", source)
    assert finding.fix.startswith("# take this line out: out = F.softmax(out, dim=1)  # line 5")
