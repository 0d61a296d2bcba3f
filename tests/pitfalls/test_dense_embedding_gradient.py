"""Tables of which few rows are looked up, and those whose gradient is full or sparse for a reason."""

import pytest

from tests.cells import a_notebook
from tests.fakes import a_backward, a_module, a_place, a_run, a_step, a_witness
from torch_inspector.facts import TableFact
from torch_inspector.pitfalls.memory.dense_embedding_gradient import check

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
table, small = nn.Embedding(140_000, 64), nn.Embedding(500, 64)
picked = torch.randint(0, 140_000, (128,))
"""
FOUND = {
    "a layer": "table(picked).pow(2).mean().backward()",
    "the functional": "nn.functional.embedding(picked, table.weight).pow(2).mean().backward()",
    "two lookups": "(table(picked) * table(picked + 1 - 1)).sum().backward()",
    "a bag": (
        "bag = nn.EmbeddingBag(140_000, 64, _weight=table.weight.detach())\n"
        "bag(picked, torch.arange(0, 128, 4)).sum().backward()"
    ),
    "in a model in a function": (
        "def train():\n    net = nn.Sequential(table, nn.Linear(64, 1))\n    net(picked).mean().backward()\ntrain()"
    ),
}
SILENT = {
    "small": "small(picked % 500).sum().backward()",
    "sparse": "t = nn.Embedding.from_pretrained(table.weight.detach(), freeze=False, sparse=True)\nt(picked).sum().backward()",  # noqa: E501
    "frozen": "t = nn.Embedding.from_pretrained(table.weight.detach())\n(small(picked % 500) * t(picked)).sum().backward()",  # noqa: E501
    "many rows": "table(torch.arange(0, 140_000, 15)).sum().backward()",
    "tied": "(table(picked) @ table.weight.t()).mean().backward()",
    "a penalty besides": "table(picked).sum().backward()\ntable.weight.norm().backward()",
    "accumulated": "s = torch.optim.SGD(table.parameters())\nfor _ in range(80):\n    table(picked).sum().backward()\ns.step()",  # noqa: E501
    "no backward": "out = table(picked).sum()",
}


def found(code):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
        assert notebook.errors == [None, None]
        return [one for one in run.findings if one.slug == "dense-embedding-gradient"]


@pytest.mark.parametrize("name", FOUND)
def test_few_rows_of_a_large_table(name):
    (finding,) = found(FOUND[name])
    assert finding.severity == "hint"
    assert finding.code.count("backward()")
    assert "128" in finding.message or "256" in finding.message
    assert finding.fix.startswith(f"nn.Embedding{'Bag' if name == 'a bag' else ''}(..., sparse=True)")


@pytest.mark.parametrize("name", SILENT)
def test_other_tables(name):
    assert found(SILENT[name]) == []


def test_name_size_and_accumulation():
    table = TableFact(11, (1_000_000, 64), 256_000_000, 64_000_000, 64 * 1_000, ("EmbeddingBackward0",))
    seen = a_backward(witness=a_witness(tables=(table,), leaf_keys=frozenset([11])))
    model = a_module("model", parameter_names=((11, "words.weight"),))
    (finding,) = check(a_run(seen, after=[model]))
    assert (finding.subject, finding.severity) == ("model.words.weight", "")
    assert "at most 1,000" in finding.message
    assert list(check(a_run(seen, a_step(backward_count=51)))) == []
    assert list(check(a_run(seen, min_nbytes=300_000_000))) == []
    other = a_backward(place=a_place(9), witness=a_witness(leaf_keys=frozenset([11])))
    assert list(check(a_run(seen, other))) == []


def test_a_table_that_a_method_looks_into_has_its_name():
    model = (
        "class Score(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.ent = nn.Embedding(140_000, 64)\n    def score(self, rows):\n"
        "        return self.ent(rows).sum()\nmodel = Score()\nmodel.score(picked).backward()"
    )
    (finding,) = found(model)
    assert finding.subject == "model.ent.weight"


USE = "table(picked).pow(2).mean().backward()"
BAG = "bag = nn.EmbeddingBag(140_000, 64, {0})\nbag(picked, torch.arange(0, 128, 4)).sum().backward()"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (BAG.format("mode='max'"), "nn.Embedding(..., sparse=True) and .amax(1) of the rows of each bag with"),
        (BAG.format("scale_grad_by_freq=True"), "nn.EmbeddingBag(..., sparse=True) without scale_grad_by_freq=True"),
        (f"opt = torch.optim.SGD(table.parameters(), weight_decay=0.1)\n{USE}\nopt.step()", "without weight_decay"),
        (f"opt = torch.optim.SGD(table.parameters(), lr=0.1)\n{USE}\nopt.step()", "Adagrad for its weight"),
        (
            (
                f"opt = torch.optim.SGD(table.parameters(), lr=0.1)\n{USE}\n"
                "nn.utils.clip_grad_norm_(table.parameters(), 1.0)\nopt.step()"
            ),
            "clip_grad_norm_ refuses it",
        ),
    ],
)
def test_what_sparse_gradients_refuse(code, said):
    (finding,) = found(code)
    assert said in finding.fix
