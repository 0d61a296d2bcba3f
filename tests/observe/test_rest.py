"""When the looks at training steps come to rest."""

from tests.cells import a_notebook

MADE_ANEW = """\
import torch
from torch import nn
net, x, y = nn.Linear(3, 1), torch.rand(8, 3), torch.rand(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def step():
    criterion = nn.MSELoss()
    opt.zero_grad()
    criterion(net(x), y).backward()
    opt.step()
for _ in range(45):
    step()"""


def test_a_loss_made_anew_in_each_step_lets_the_looks_rest():
    with a_notebook() as notebook:
        run = notebook.run(MADE_ANEW)
    assert len(run.trace.steps) < 20
    assert [one.count for one in run.trace.counts if one.kind == "step"] == [45]
