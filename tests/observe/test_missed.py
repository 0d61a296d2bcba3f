"""Where following the gradients failed once, nothing is said of steps: what comes after is a guess."""

import pytest

from tests.cells import a_notebook
from torch_inspector.observe.optimizer_record import OptimizerRecord
from torch_inspector.observe.values import ValueWatch

LOOP = """\
import torch
from torch import nn
torch.manual_seed(0)
net, x = nn.Linear(3, 1), torch.randn(16, 3)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(6):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()"""
MISTAKE = LOOP.replace("    opt.zero_grad()\n", "")


FOLLOWING = [
    (ValueWatch, "before"),
    *((OptimizerRecord, name) for name in ("marks", "clear", "begin_backward", "end_backward", "end_step", "values")),
]


@pytest.mark.parametrize("last", [1, 2, 100])
@pytest.mark.parametrize(("owner", "method"), FOLLOWING, ids=[name for _, name in FOLLOWING])
def test_a_failure_accuses_nobody(monkeypatch, owner, method, last):
    own, calls = getattr(owner, method), []

    def failing(*args, **kwargs):
        calls.append(method)
        if len(calls) <= last:
            raise NameError(method)
        return own(*args, **kwargs)

    with a_notebook() as notebook:
        monkeypatch.setattr(owner, method, failing)
        notebook.run(LOOP)
        assert notebook.errors == [None]
        assert notebook.extension.session.failures.counts
        assert notebook.findings() == []
        monkeypatch.setattr(owner, method, own)
        notebook.run(MISTAKE)
        assert [slug for _, slug, _, _ in notebook.findings()] == ["missing-zero-grad"]
        notebook.extension.session.failures.counts.clear()
