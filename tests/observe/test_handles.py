"""The numbers of the user's own hooks, which are shown wherever a module's hooks are printed."""

import torch
from torch.optim import optimizer as optim
from torch.utils.hooks import RemovableHandle

from tests.cells import a_notebook

LOSS = """
import torch
net = torch.nn.Linear(2, 1)
x = torch.tensor([[0.0, 0.0]], requires_grad=True)
loss = (net(x) * 0).sqrt().log().sum()
loss.backward()
"""


def test_hooks_of_ours_take_no_number():
    before = RemovableHandle.next_id
    with a_notebook() as notebook:
        notebook.run(f"%%torchcheck\n{LOSS}")
        assert optim._global_optimizer_pre_hooks
        assert RemovableHandle.next_id == before
    assert not optim._global_optimizer_pre_hooks
    assert not optim._global_optimizer_post_hooks


def test_a_hook_of_the_users_stays_when_ours_goes():
    calls = []
    with a_notebook() as notebook:
        notebook.run("import torch")
        handle = optim.register_optimizer_step_pre_hook(lambda *_: calls.append(1))
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0).step()
    handle.remove()
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0).step()
    assert calls == [1]
