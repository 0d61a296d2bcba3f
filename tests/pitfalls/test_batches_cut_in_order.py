"""Batches that a loop cuts, without a loader, from data which lie class by class."""

import pytest

from tests.cells import findings_in

# ruff: noqa: E501, ISC004
START = """
import random
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x, y = torch.randn(96, 4), torch.arange(2).repeat_interleave(48)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
TRAIN = "opt.zero_grad()\nloss = F.cross_entropy(net(xb), yb)\nloss.backward()\nopt.step()"
CUT = "for i in range(0, len(x), 16):\n    xb, yb = x[i:i + 16], y[i:i + 16]\n"


def indented(text):
    return "\n".join(f"    {line}" for line in text.split("\n"))


def found(*cells):
    return findings_in(START, *cells, slug="sorted-data-unshuffled", fails=False)


LOOPS = [
    f"{CUT}{indented(TRAIN)}",
    f"size = 16\nfor i in range(0, x.shape[0], size):\n    xb = x[i:i + size]\n    yb = y[i:i + size]\n{indented(TRAIN)}",
    "size = 16\nfor b in range(len(x) // size):\n    xb = x[b * size:(b + 1) * size]\n"
    f"    yb = y[b * size:(b + 1) * size]\n{indented(TRAIN)}",
    f"for xb, yb in zip(x.split(16), y.split(16)):\n{indented(TRAIN)}",
    f"for i in range(0, len(x), 16):\n    end = i + 16\n    yb, xb = y[i:end], x[i:end]\n{indented(TRAIN)}",
    "for i in range(0, len(x), 16):\n    opt.zero_grad()\n    F.cross_entropy(net(x[i:i + 16]), y[i:i + 16]).backward()\n"
    "    opt.step()",
    f"def epoch(x, y, size=16):\n{indented(CUT + indented(TRAIN))}\nepoch(x, y)",
]


@pytest.mark.parametrize("loop", LOOPS)
def test_batches_of_one_class(loop):
    (finding,) = found(f"for _ in range(3):\n{indented(loop)}")
    assert finding.subject == "y"
    assert "48 of class 0, then 48 of class 1" in finding.message
    assert finding.fix.startswith("order = torch.randperm(len(y))\nx, y = x[order], y[order]")


def test_what_mends_it():
    (finding,) = found(f"for _ in range(3):\n{indented(LOOPS[0])}")
    assert found(f"for _ in range(3):\n{indented(finding.fix)}\n{indented(LOOPS[0])}") == []


@pytest.mark.parametrize(
    "cell",
    [
        # Classes that are mixed, by chance or by an order that is drawn in each epoch.
        f"y = torch.randint(0, 2, (96,))\n{LOOPS[0]}",
        f"order = torch.randperm(96)\nx, y = x[order], y[order]\n{LOOPS[0]}",
        f"for _ in range(3):\n    order = torch.randperm(96)\n    x, y = x[order], y[order]\n{indented(LOOPS[0])}\n"
        "back = y.argsort()\nx, y = x[back], y[back]",
        f"order = torch.randperm(96)\n{LOOPS[0].replace('x[i:i + 16], y[i:i + 16]', 'x[order[i:i + 16]], y[order[i:i + 16]]')}",
        f"starts = list(range(0, 96, 16))\nrandom.shuffle(starts)\n{LOOPS[0].replace('range(0, len(x), 16)', 'starts')}",
        f"def epoch(x, y):\n{indented(LOOPS[0])}\norder = torch.randperm(96)\nepoch(x[order], y[order])",
        # Steps of all batches together, none, or under a condition that a sorted part does not meet.
        f"{CUT}    F.cross_entropy(net(xb), yb).backward()\nopt.step()",
        f"with torch.no_grad():\n{indented(CUT)}    right = (net(xb).argmax(1) == yb).sum()",
        f"def epoch(x, y, train):\n{indented(CUT)}    if train:\n{indented(indented(indented(TRAIN)))}\n"
        "order = torch.randperm(96)\nepoch(x[order], y[order], True)\nepoch(x, y, False)",
        # Numbers that are not classes: each comes once, or too few of each, or inputs in order.
        f"y = torch.arange(96) % 96\nnet, opt = nn.Linear(4, 96), opt\n{LOOPS[0]}",
        "ids, z = torch.arange(2).repeat_interleave(48), torch.randn(96)\nscale = nn.Embedding(2, 1)\n"
        "rate = torch.optim.SGD(scale.parameters(), lr=0.1)\nfor i in range(0, 96, 16):\n    rate.zero_grad()\n"
        "    F.mse_loss(scale(ids[i:i + 16])[:, 0], z[i:i + 16]).backward()\n    rate.step()",
    ],
)
def test_batches_that_are_not_of_one_class(cell):
    assert found(cell) == []


OTHERS = """
n, group = 96, torch.arange(4).repeat_interleave(24)
w, z, out = torch.tensor([1.0, 0.8, 0.6, 0.4]), torch.randn(96, 1), nn.Linear(4, 1)
rate = torch.optim.SGD(out.parameters(), lr=0.1)
"""
REST = "; rate.zero_grad(); loss.backward(); rate.step()"


def others(first, loss, rest=REST):
    return f"{OTHERS}{first}\nfor i in range(0, n, 16):\n    {loss}{rest}"


LOSS = "F.mse_loss(out(x[i:i + 16]), z[i:i + 16])"
EACH = "l = F.mse_loss(out(x[i:i + 16]), z[i:i + 16], reduction='none')[:, 0]"


@pytest.mark.parametrize(
    "cell",
    [
        # A mask of padding, a column of the split, a level as a weight, a task that is printed: none is a target.
        others("m = torch.ones(n)\nm[-40:] = 0", f"{EACH}; loss = (l * m[i:i + 16]).sum()"),
        others("part = (torch.arange(n) > 60).long()", f"{EACH}; loss = (l * (part[i:i + 16] == 0)).sum()"),
        others("", f"{EACH}; loss = (l * w[group[i:i + 16]]).mean()"),
        others("", f"g = group[i:i + 16]; loss = {LOSS}; print(g[0].item())"),
        # The same beside classes that are mixed, or that lie in order within each group.
        others(
            "q = torch.randint(0, 2, (n,))", "l = F.cross_entropy(net(x[i:i + 16]), q[i:i + 16]) * w[group[i:i + 16]]; loss = l.mean()"
        ),
        others("part = (torch.arange(n) > 60).long()\nhead = nn.Linear(4, 2)\nrate = torch.optim.SGD(head.parameters(), lr=0.1)",
               "l = F.cross_entropy(head(x[i:i + 16]), part[i:i + 16], reduction='none'); loss = (l * w[group[i:i + 16]]).mean()"),
        # A subject for an embedding.
        others("ids = nn.Embedding(4, 4)", "loss = F.mse_loss(out(x[i:i + 16] + ids(group[i:i + 16])), z[i:i + 16])"),
        # One model and one optimizer for each class.
        others("nets = [nn.Linear(4, 2) for _ in range(2)]\nopts = [torch.optim.SGD(one.parameters(), lr=0.1) for one in nets]",
               "xb, yb = x[i:i + 16], y[i:i + 16]; c = yb[0].item(); loss = F.cross_entropy(nets[c](xb), yb)", "; opts[c].zero_grad(); loss.backward(); opts[c].step()"),
        # States of a machine over time: the steps of one sequence.
        "cell, head = nn.GRUCell(4, 8), nn.Linear(8, 2)\nopt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)\nh = torch.zeros(1, 8)\n"
        "for i in range(0, 96, 16):\n    h, outs = h.detach(), []\n    for one in x[i:i + 16]:\n        h = cell(one[None], h)\n        outs.append(head(h))\n"
        "    loss = F.cross_entropy(torch.cat(outs), y[i:i + 16])\n    opt.zero_grad()\n    loss.backward()\n    opt.step()",
        "rnn = nn.GRU(4, 2)\nopt = torch.optim.SGD(rnn.parameters(), lr=0.1)\n" + LOOPS[0].replace("net(xb)", "rnn(xb)[0]"),
        "h = torch.zeros(1, 4)\n" + LOOPS[0].replace("net(xb)", "net(xb + h)") + "\n    h = xb[-1:]",
        "net = nn.Conv1d(4, 2, 3, padding=1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n" + LOOPS[0].replace("net(xb)", "net(xb.T).T"),
    ],
)  # fmt: skip
def test_columns_that_are_not_the_target_and_orders_that_mean_something(cell):
    assert found(cell) == []


@pytest.mark.parametrize(
    "loss",
    [
        "nn.CrossEntropyLoss()(net(xb), yb)",
        "F.cross_entropy(net(xb), target=yb.long())",
        "F.binary_cross_entropy_with_logits(net(xb)[:, 0], yb.float())",
    ],
)
def test_targets_of_other_losses(loss):
    assert found(LOOPS[0].replace("F.cross_entropy(net(xb), yb)", loss))


ANEW = "net = nn.Linear(4, 2)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
HELPERS = """
import copy
old, anchor, state = copy.deepcopy(net), net.weight.detach().clone(), copy.deepcopy(net.state_dict())
def ewc(net): return ((net.weight - anchor) ** 2).sum()
def again(net, opt, rows=24):
    opt.zero_grad()
    F.cross_entropy(net(x[:rows]), y[:rows]).backward()
    opt.step()
def back(net):
    with torch.no_grad():
        net.weight.copy_(anchor)
seen = torch.randint(0, 96, (32,))
"""


def with_more(first="", more="", last="", loss=""):
    train = TRAIN.replace("F.cross_entropy(net(xb), yb)", f"F.cross_entropy(net(xb), yb){loss}")
    train = "\n".join(part for part in (first, train, last) if part).replace(
        "loss.backward()", f"{more}loss.backward()"
    )
    return f"{HELPERS}{CUT}{indented(train)}"


@pytest.mark.parametrize(
    "cell",
    [
        # Each part has a model of its own, or the weights of the beginning.
        with_more(ANEW.strip()),
        with_more("net = copy.deepcopy(old)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)"),
        with_more("net.load_state_dict(state)"),
        with_more(last="net.load_state_dict(state)"),
        with_more("back(net)"),
        with_more("net.reset_parameters()"),
        with_more("for p, q in zip(net.parameters(), old.parameters()):\n    p.data.copy_(q)"),
        # The loss has more in it than the batch.
        with_more(loss=" + F.cross_entropy(net(x[seen]), y[seen])"),
        with_more(loss=" + 10 * ewc(net)"),
        with_more(more="loss += 10 * ewc(net)\n"),
        with_more(more="loss = loss + 10 * ewc(net)\n"),
        with_more(more="loss = torch.stack([loss, 10 * ewc(net)]).sum()\n"),
        with_more(more="loss = sum([loss, ewc(net)])\n"),
        with_more(more="ewc(net).backward()\n"),
        with_more(loss=" + F.kl_div(net(xb).log_softmax(1), old(xb).softmax(1), reduction='batchmean')"),
        # Steps on what came before, gradients by hand, steps that move nothing.
        with_more(last="again(net, opt)"),
        with_more(last="for _ in range(2):\n    opt.zero_grad()\n    F.cross_entropy(net(x[seen]), y[seen]).backward()\n    opt.step()"),
        with_more().replace("    loss.backward()", "    loss.backward()\n    net.weight.grad -= net.weight.grad.mean()"),
        "opt = torch.optim.SGD(net.parameters(), lr=0.0)\n" + with_more(),
        # The data lie in this order only since the loop has ended.
        f"y = torch.randint(0, 2, (96,))\n{LOOPS[0]}\norder = y.argsort()\nx.copy_(x[order])\ny.copy_(y[order])",
        f"y = torch.randint(0, 2, (96,))\n{LOOPS[0]}\ny[:] = y.sort().values",
        f"def epoch(x, y):\n{indented(LOOPS[0])}\ny = torch.randint(0, 2, (96,))\nepoch(x, y)\ntorch.sort(y, out=(y, torch.zeros(96).long()))",
        "xs, ys = x.clone(), y.clone()\nfor _ in range(2):\n    order = torch.randperm(96)\n    torch.index_select(x, 0, order, out=xs)\n"
        f"    torch.index_select(y, 0, order, out=ys)\n{indented(LOOPS[5].replace('x[', 'xs[').replace('y[', 'ys['))}\nxs.copy_(x)\nys.copy_(y)",
    ],
)  # fmt: skip
def test_turns_that_do_not_teach_one_model_one_class_at_a_time(cell):
    assert found(cell) == []


@pytest.mark.parametrize(
    "cell",
    [
        with_more(),
        with_more(loss=" / 2"),
        with_more(last="print([p.mean().item() for p in net.parameters()])"),
        with_more(more="scaled = (0.5 * loss).mean()\n").replace("loss.backward()", "scaled.backward()"),
        "scaler = torch.amp.GradScaler('cpu', enabled=False)\n"
        + with_more().replace("loss.backward()", "scaler.scale(loss).backward()").replace("opt.step()", "scaler.step(opt)"),
        with_more(last="best = copy.deepcopy(net.state_dict())"),
        with_more() + "\nx.add_(0.0)\nnet.load_state_dict(state)",
        f"def epoch(x, y, seen):\n{indented(LOOPS[0])}\n        seen.append(loss.item())\nlosses = []\nepoch(x, y, losses)",
        f"def step(net):\n    net(x).sum().backward()\n{LOOPS[0]}",
    ],
)  # fmt: skip
def test_turns_that_do(cell):
    assert found(cell)
