"""Where following the gradients failed once, nothing is said of steps: what comes after is a guess."""

import pytest

from tests.cells import a_notebook
from torch_inspector.observe.optimizer_record import OptimizerRecord

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


@pytest.mark.parametrize("method", ["marks", "clear", "begin_backward", "end_backward", "end_step", "values", "keys"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_failure_accuses_nobody(monkeypatch, method, nth):
    own, calls = getattr(OptimizerRecord, method), []

    def failing(record, *args, **kwargs):
        calls.append(method)
        if len(calls) == nth:
            raise NameError(method)
        return own(record, *args, **kwargs)

    with a_notebook() as notebook:
        monkeypatch.setattr(OptimizerRecord, method, failing)
        notebook.run(LOOP)
        assert notebook.errors == [None]
        assert notebook.findings() == []
        assert notebook.extension.session.failures.counts
        monkeypatch.setattr(OptimizerRecord, method, own)
        notebook.run(MISTAKE)
        assert [slug for _, slug, _, _ in notebook.findings()] == ["missing-zero-grad"]
        notebook.extension.session.failures.counts.clear()
