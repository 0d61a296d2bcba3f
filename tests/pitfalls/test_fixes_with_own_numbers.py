"""Fixes in the words of the line where they go: the user's own number, the attribute of the class."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 4), torch.randn(64, 1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
size, every = 8, 4"""
LOOP = """
opt.zero_grad()
for step in range(16):
    loss = F.mse_loss(net(x[step:step + 8]), y[step:step + 8])
    loss.backward()
    if (step + 1) % {every} == 0:
        opt.step()
        opt.zero_grad()"""
TRAINER = """
class Trainer:
    def __init__(self, model):
        self.model, self.opt = model, torch.optim.SGD(model.parameters(), lr=0.01)
    def part(self, a, b):
        self.opt.zero_grad()
        F.mse_loss(self.model(a), b).backward()
    def fit(self):
        for _ in range(6):
            for a, b in zip(x.chunk(4), y.chunk(4)):
                self.part(a, b)
            self.opt.step()
trainer = Trainer(net)"""


@pytest.mark.parametrize(("every", "number"), [("every", "every"), ("4", "4")])
def test_a_loss_is_divided_by_the_users_own_number(every, number):
    (one,) = findings_in(SETUP, LOOP.format(every=every), slug="accumulation-unscaled", fails=False)
    assert one.fix == f"(loss / {number}).backward()"


def test_in_a_class_the_optimizer_is_an_attribute():
    (one,) = findings_in(SETUP, TRAINER, "trainer.fit()", slug="zero-grad-misplaced", fails=False)
    assert one.fix.startswith("self.opt.step()")


def test_pictures_that_came_out_smaller_are_made_as_large():
    cells = "images = torch.rand(4, 1, 8, 8)\nout = images[..., :7, :7]\nF.mse_loss(out, images)"
    (one,) = findings_in(SETUP, cells.replace("8, 8", "32, 32").replace("7", "31"), slug="shapes-do-not-fit")
    assert "along axis -1 they are 31 and 32 long" in one.message
    assert one.fix.startswith("out = torch.nn.functional.interpolate(out, size=images.shape[-2:])")
