"""Loaders that give one class after the other to a loop that trains."""

import pytest

from tests.cells import a_notebook, findings_in

SETUP = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(96, 4), torch.arange(3).repeat_interleave(32)

class Rows(Dataset):
    def __init__(self, rows): self.rows = rows
    def __len__(self): return len(self.rows)
    def __getitem__(self, i): return self.rows[i]

def learn(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOADER = "loader = DataLoader(TensorDataset(x, y), batch_size=16)\n"
LOOP = "for xb, yb in loader:\n    learn(nn.functional.cross_entropy(net(xb), yb))\n"


def told(*cells):
    with a_notebook() as notebook:
        for cell in (SETUP, *cells):
            notebook.run(cell)
        assert notebook.errors == [None] * (len(cells) + 1)
        return [(cell, line) for cell, slug, line, _ in notebook.findings() if slug == "sorted-data-unshuffled"]


def test_classes_are_counted():
    with a_notebook() as notebook:
        for cell in (SETUP, LOADER + LOOP):
            run = notebook.run(cell)
    (fact,) = run.trace.loaders
    assert (fact.class_runs, fact.trained_count) == (((0, 32), (1, 32), (2, 32)), 6)


@pytest.mark.parametrize(
    "cell",
    [
        LOADER + LOOP,
        LOADER + "for epoch in range(3):\n" + "".join(f"    {line}\n" for line in LOOP.splitlines()),
        "loader = DataLoader(Rows([(a, int(b)) for a, b in zip(x, y)]), batch_size=16)\n" + LOOP,
        (
            "loader = DataLoader(Rows([dict(image=a, label=b) for a, b in zip(x, y)]), batch_size=16)\n"
            "for batch in loader:\n    learn(nn.functional.cross_entropy(net(batch['image']), batch['label']))"
        ),
        (
            "loader = DataLoader(TensorDataset(x, (y > 0).float().view(-1, 1)), batch_size=16)\n"
            "for xb, yb in loader:\n    learn(nn.functional.binary_cross_entropy_with_logits(net(xb)[:, :1], yb))"
        ),
    ],
    ids=["tensors", "epochs", "rows", "dictionaries", "yes-or-no"],
)
def test_sorted_data_are_told_once(cell):
    assert len(told(cell)) == 1


@pytest.mark.parametrize(
    "cell",
    [
        "loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)\n" + LOOP,
        "torch.manual_seed(0)\norder = torch.randperm(96)\n"
        "loader = DataLoader(TensorDataset(x[order], y[order]), batch_size=16)\n" + LOOP,
        "loader = DataLoader(TensorDataset(x, torch.zeros(96, dtype=torch.long)), batch_size=16)\n" + LOOP,
        (
            "loader = DataLoader(TensorDataset(x, y), batch_size=96)\nfor epoch in range(5):\n"
            "    for xb, yb in loader:\n        learn(nn.functional.cross_entropy(net(xb), yb))\n"
        ),
        LOADER + "s = 0\nfor xb, yb in loader:\n    s = s + nn.functional.cross_entropy(net(xb), yb)\nlearn(s)",
        LOADER
        + "with torch.no_grad():\n    for xb, yb in loader:\n        net(xb)\nfor _ in range(6): learn(net(x).sum())",
        (
            "loader = DataLoader(TensorDataset(x, torch.linspace(0, 1, 96)), batch_size=16)\n"
            "for xb, yb in loader:\n    learn(nn.functional.mse_loss(net(xb)[:, 0], yb))"
        ),
        (
            "rows = DataLoader(Rows([(a, int(b)) for a, b in zip(x, y)]), batch_size=4)\n"
            "for xb, yb in rows:\n    learn(nn.functional.cross_entropy(net(xb), yb))"
        ),
        "loader = DataLoader(TensorDataset(x, (torch.arange(96) > 92).long()), batch_size=16)\n" + LOOP,
    ],
    ids=["shuffled", "mixed", "one-class", "whole", "summed", "read", "numbers", "small", "few"],
)
def test_others_are_not(cell):
    assert told(cell) == []


def test_a_loader_for_evaluation_between_steps():
    cell = LOADER + (
        "for step in range(6):\n    learn(net(x).pow(2).sum())\n    with torch.no_grad():\n"
        "        for xb, yb in loader:\n            net(xb)"
    )
    assert told(cell) == []


def test_batches_of_a_class_of_the_users_are_not_read():
    cell = (
        "class Own(torch.Tensor): pass\n"
        "loader = DataLoader(Rows([(a, int(b)) for a, b in zip(x, y)]), batch_size=16,\n"
        "    collate_fn=lambda rows: (torch.stack([a for a, _ in rows]), Own([b for _, b in rows]).long()))\n"
        "for xb, yb in loader:\n    learn(nn.functional.cross_entropy(net(xb), yb.as_subclass(torch.Tensor)))"
    )
    assert told(cell) == []


@pytest.mark.parametrize(("sampler", "lines"), [("SequentialSampler(x)", [(2, 1)]), ("RandomSampler(x)", [])])
def test_a_sampler_of_batches_keeps_the_order_of_its_own_sampler(sampler, lines):
    names = "from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler\n"
    loader = f"loader = DataLoader(TensorDataset(x, y), batch_sampler=BatchSampler({sampler}, 16, False))"
    assert told(names + loader, LOOP) == lines


PARTS = """
loader = DataLoader(Rows([dict(mel=a, speaker=int(b), place=n) for n, (a, b) in enumerate(zip(x, y))]), batch_size=16)
trios = DataLoader(Rows([(a, int(b), n) for n, (a, b) in enumerate(zip(x, y))]), batch_size=16)
compare = nn.CrossEntropyLoss()
regress = nn.MSELoss()
class Trainer:
    def training_step(self, batch, number):
        return compare(net(batch["mel"]), batch["speaker"].long())
trainer, F = Trainer(), nn.functional
probe = nn.Linear(4, 4)
@torch.no_grad()
def seen(batch):
    return compare(probe(batch["mel"]), batch["speaker"])
"""
BY_LOSS = {
    "key": "for batch in loader:\n    learn(F.cross_entropy(net(batch['mel']), batch['speaker']))",
    "name": "for b in loader:\n    x0, y0 = b['mel'], b['speaker'].to('cpu')\n    learn(compare(net(x0), y0))",
    "count": "for i, b in enumerate(loader):\n    learn(nn.CrossEntropyLoss()(net(b['mel']), target=b['speaker']))",
    "step": "for i, b in enumerate(loader):\n    learn(trainer.training_step(b, i))",
    "trio": "for xb, yb, n in trios:\n    learn(compare(net(xb), yb))",
    "a field of its own": "for xb, yb, n in trios:\n    terms = {}\n    terms['ce'] = compare(net(xb), yb)\n"
    "    learn(sum(terms.values()))",
    "one of two": "for xb, yb, n in trios:\n    seen, loss = compare(probe(xb), n % 4).item(), compare(net(xb), yb)\n"
    "    learn(loss)",
    "with others put in": "for xb, yb, n in trios:\n    logs = {'seen': compare(probe(xb), n % 4)}\n"
    "    out = {**logs, 'main': compare(net(xb), yb)}\n    learn(out['main'])",
    "what is taken out": "for xb, yb, n in trios:\n    out = {'main': compare(net(xb), yb)}\n"
    "    learn(out.pop('main'))",
    "a mask": "for xb, yb, n in trios:\n    each, kept = F.cross_entropy(net(xb), yb, reduction='none'), n > -1\n"
    "    learn(each[kept].mean())",
    "its own method": "class Fit:\n    def step(self, b):\n        learn(compare(net(b['mel']), b['speaker']))\n"
    "    def fit(self):\n        for b in loader: self.step(b)\nFit().fit()",
    "place": "for batch in trios:\n    learn(compare(net(batch[0]), batch[1]))",
}
OTHERS = {
    "regression": "for b in loader:\n    learn(regress(net(b['mel'])[:, 0], b['speaker'].float()))",
    "not the target": "for b in loader:\n    learn(compare(net(b['mel'] + b['speaker'][:, None]), b['mel'].argmax(1)))",
    "read": "for b in loader:\n    compare(net(b['mel']), b['speaker'])",
    "another": "for xb, yb, n in trios:\n    learn(compare(net(xb), n % 4))",
    "a probe": "for xb, yb, n in trios:\n    learn(compare(net(xb), n % 4))\n    with torch.no_grad():\n"
    "        leak = compare(probe(xb), yb)",
    "a probe in a function": "for b in loader:\n    loss = compare(net(b['mel']), b['place'] % 4)\n    learn(loss)\n"
    "    leak = seen(b)",
    "not trained": "for xb, yb, n in trios:\n    loss = compare(probe(xb), yb)\n    print(loss.item())\n"
    "    loss = compare(net(xb), n % 4)\n    learn(loss)",
    "a name with another meaning": "for b in loader:\n    target = b['speaker']\n    count = target.unique()\n"
    "    target = b['place'] % 4\n    loss = compare(net(b['mel']), target)\n    learn(loss)",
    "one of two": "for xb, yb, n in trios:\n    loss, seen = compare(net(xb), n % 4), compare(probe(xb), yb)\n"
    "    learn(loss)\n    print(seen.item())",
    "one of two from a function": "def both(xb, yb, n):\n    return compare(net(xb), n % 4), compare(probe(xb), yb)\n"
    "for b in trios:\n    xb, yb, n = b\n    loss, seen = both(xb, yb, n)\n    learn(loss)",
    "the first, and others": "def both(xb, yb, n):\n    return compare(net(xb), n % 4), compare(probe(xb), yb)\n"
    "for xb, yb, n in trios:\n    loss, *rest = both(xb, yb, n)\n    learn(loss)",
    "the last": "for xb, yb, n in trios:\n    out = compare(probe(xb), yb), compare(net(xb), n % 4)\n"
    "    learn(out[-1])",
    "one that a function takes": "def learn_main(out):\n    out['main'].backward()\n    optimizer.step()\n"
    "for xb, yb, n in trios:\n    learn_main({'main': compare(net(xb), n % 4), 'seen': compare(probe(xb), yb)})",
    "all but one": "for xb, yb, n in trios:\n"
    "    out = {'main': compare(net(xb), n % 4), 'seen': compare(probe(xb), yb)}\n"
    "    learn(sum(one for key, one in out.items() if key != 'seen'))",
    "beside what is put in": "def both(xb, yb, n):\n    logs = {'seen': compare(probe(xb), yb)}\n"
    "    return {'main': compare(net(xb), n % 4), **logs}\nfor xb, yb, n in trios:\n    learn(both(xb, yb, n)['main'])",
    "a copy": "for xb, yb, n in trios:\n"
    "    out = dict({'main': compare(net(xb), n % 4), 'seen': compare(probe(xb), yb)})\n"
    "    out = {key: one / 2 for key, one in out.copy().items()}\n    learn(out['main'])",
    "what is left": "for xb, yb, n in trios:\n"
    "    out = {'main': compare(net(xb), n % 4), 'seen': compare(probe(xb), yb)}\n"
    "    seen = out.pop('seen')\n    learn(sum(out.values()))",
    "what is not deleted": "for xb, yb, n in trios:\n"
    "    out = {'main': compare(net(xb), n % 4), 'seen': compare(probe(xb), yb)}\n"
    "    del out['seen']\n    learn(sum(out.values()))",
    "chosen by names": "for xb, yb, n in trios:\n    out, names = {}, ['main']\n"
    "    out['main'] = compare(net(xb), n % 4)\n    out['seen'] = compare(probe(xb), yb)\n"
    "    learn(sum(out[key] for key in names))",
    "chosen by a name": "for xb, yb, n in trios:\n    key = 'main'\n"
    "    learn({'main': compare(net(xb), n % 4), 'seen': compare(probe(xb), yb)}[key])",
    "one of a dictionary": "def both(xb, yb, n):\n"
    "    return {'main': compare(net(xb), n % 4), 'seen': compare(probe(xb), yb)}\n"
    "for xb, yb, n in trios:\n    out = both(xb, yb, n)\n    learn(out['main'])",
    "a field": "from types import SimpleNamespace as Out\nfor xb, yb, n in trios:\n"
    "    out = Out(loss=compare(net(xb), n % 4), seen=compare(probe(xb), yb))\n    learn(out.loss)",
    "a weight": "for xb, yb, n in trios:\n    sure = compare(probe(xb), yb)\n"
    "    learn(compare(net(xb), n % 4) * (1 + sure.detach()) / (1 + sure.item()))",
    "a loss that is another now": "compare = nn.MSELoss()\nfor b in loader:\n"
    "    learn(compare(net(b['mel'])[:, 0], b['speaker'].float()))",
    "a method of another class": "class Plain:\n    def training_step(self, batch, number):\n"
    "        return net(batch['mel']).sum()\ntrainer = Plain()\nfor i, b in enumerate(loader):\n"
    "    learn(trainer.training_step(b, i))",
}


@pytest.mark.parametrize("cell", BY_LOSS.values(), ids=BY_LOSS)
def test_the_loss_tells_which_part_has_the_classes(cell):
    assert told(PARTS, cell) == [(2, 5 if "Fit" in cell else 1)]
    assert told(PARTS.replace("batch_size=16", "batch_size=16, shuffle=True"), cell) == []


@pytest.mark.parametrize("cell", OTHERS.values(), ids=OTHERS)
def test_parts_that_are_no_targets(cell):
    assert told(PARTS, cell) == []


@pytest.mark.parametrize(
    ("function", "call", "named"),
    [
        ("def fit(part):\n    for xb, yb in part:", "fit(loader)", "`part` (`loader` in the notebook) does not"),
        ("def fit(loader):\n    for xb, yb in loader:", "fit(loader)", "`loader` does not"),
        ("def fit(part):\n    for xb, yb in part:", "fit([loader][0])", "`part` (`loader` in the notebook) does not"),
    ],
)
def test_a_loader_that_a_function_is_given(function, call, named):
    body = "        learn(nn.functional.cross_entropy(net(xb), yb))\n"
    (finding,) = findings_in(SETUP, LOADER, f"{function}\n{body}{call}", slug="sorted-data-unshuffled", fails=False)
    assert finding.message.startswith(named)
    assert finding.subject == "loader"
