"""Parameters of which a part is picked, and those that are used as a whole."""

import pytest

from tests.cells import a_notebook
from tests.fakes import a_backward, a_run, a_step, a_tensor, a_witness
from torch_inspector.facts import TableFact
from torch_inspector.pitfalls.memory.masked_parameter_dense_grad import check

SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
experts = nn.Parameter(torch.randn(64, 256, 260))
rows = nn.Parameter(torch.randn(70_000, 64))
numbers = torch.randint(0, 70_000, (32,))
"""
FOUND = {
    "a list": "experts[[1, 5]].pow(2).mean().backward()",
    "numbers": "rows[numbers].pow(2).mean().backward()",
    "a mask": "mask = torch.zeros(64, dtype=torch.bool)\nmask[3] = True\nexperts[mask].sum().backward()",
    "one by one": "loss = sum(experts[i].pow(2).mean() for i in (0, 7, 9))\nloss.backward()",
    "index_select": "rows.index_select(0, numbers).sum().backward()",
    "gather": "rows.gather(0, numbers[:, None]).sum().backward()",
    "in a module": (
        "class Routed(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = experts\n"
        "    def forward(self, x, i):\n        return x @ self.w[i]\n"
        "routed = Routed()\nrouted(torch.randn(4, 256), torch.tensor([2])).sum().backward()"
    ),
}
SILENT = {
    "a list of parameters": (
        "parts = nn.ParameterList([nn.Parameter(p) for p in experts.detach()])\n"
        "torch.stack([parts[1], parts[5]]).pow(2).mean().backward()"
    ),
    "a slice": "rows[:100].pow(2).mean().backward()",
    "half of it": "experts[::2][[1, 2]].sum().backward()\nexperts[torch.arange(32)].sum().backward()",
    "all, one by one": "loss = sum(experts[i].mean() for i in range(64))\nloss.backward()",
    "as a whole besides": "(experts[[1]].sum() + experts.pow(2).mean()).backward()",
    "small": "weights = nn.Parameter(torch.randn(64, 8))\nweights[[1, 2]].sum().backward()",
    "not trained": "w = nn.Linear(64, 1)\nw(rows.detach()[numbers]).sum().backward()",
    "sparse gather": "rows.gather(0, numbers[:, None], sparse_grad=True).sum().backward()",
    "accumulated over many": "for i in range(0, 64, 8):\n    experts[[i]].sum().backward()\ntorch.optim.SGD([experts]).step()",  # noqa: E501
}


def found(code):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
        assert notebook.errors == [None, None]
        return [one for one in run.findings if one.slug == "masked-parameter-dense-grad"]


@pytest.mark.parametrize("name", FOUND)
def test_a_picked_part(name):
    (finding,) = found(FOUND[name])
    assert finding.severity == "hint"
    assert "backward()" in finding.code
    assert finding.subject in ("experts", "rows", "routed.w")


@pytest.mark.parametrize("name", SILENT)
def test_parameters_used_otherwise(name):
    assert found(SILENT[name]) == []


def test_size_and_accumulation():
    table = TableFact(11, (64, 1024, 1024), 256 << 20, 64 << 20, 2 << 20, ("IndexBackward0",))
    seen = a_backward(witness=a_witness(tables=(table,), leaf_keys=frozenset([11])))
    (finding,) = check(a_run(seen, after=[a_tensor("experts", key=11)]))
    assert (finding.subject, finding.severity) == ("experts", "")
    assert "3.1%" in finding.message
    assert list(check(a_run(seen, a_step(backward_count=4)))) == []
    assert list(check(a_run(seen, min_nbytes=1 << 30))) == []
    looked_up = a_backward(witness=a_witness(tables=(table._replace(nodes=("EmbeddingBackward0",)),)))
    assert list(check(a_run(looked_up))) == []
