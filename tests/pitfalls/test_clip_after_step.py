"""Clips that no step uses, and clips that only look like it."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
torch.manual_seed(0)
net, judge = nn.Linear(3, 1), nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
second = torch.optim.SGD(net.parameters(), lr=0.01)
judging = torch.optim.SGD(judge.parameters(), lr=0.1)
w = torch.ones(3, requires_grad=True)
def loss(model=net):
    return model(torch.randn(4, 3)).pow(2).mean()
def clip(model=net, limit=1.0):
    clip_grad_norm_(model.parameters(), limit)"""
FOUND = {
    "after the step": ("loss().backward()", "opt.step()", "clip()", "opt.zero_grad()"),
    "after the step, by value": (
        "opt.zero_grad()",
        "loss().backward()",
        "opt.step()",
        "clip_grad_value_(net.parameters(), 0.5)",
    ),
    "before backward": ("opt.zero_grad()", "clip()", "loss().backward()", "opt.step()"),
    "cleared by hand": (
        "for p in net.parameters():\n        if p.grad is not None: p.grad.detach_(); p.grad.data.zero_()",
        "loss().backward(); opt.step(); clip()",
    ),
    "cleared by a product": ("loss().backward(); opt.step(); clip()", "for p in net.parameters(): p.grad *= 0"),
    "beside another tensor whose gradient is shown": (
        "opt.zero_grad(); loss().backward(); opt.step(); clip()",
        "print(w.grad)",
    ),
    "after the step of an accumulation": (
        "opt.zero_grad()",
        "loss().backward()",
        "loss().backward()",
        "opt.step()",
        "clip()",
    ),
}
SILENT = {
    "in order": ("opt.zero_grad()", "loss().backward()", "clip()", "opt.step()"),
    "for the next optimizer": ("opt.zero_grad()", "loss().backward()", "opt.step()", "clip()", "second.step()"),
    "to measure": ("opt.zero_grad()", "loss().backward()", "opt.step()", "clip(limit=1e9)"),
    "once more": ("opt.zero_grad()", "loss().backward()", "clip()", "opt.step(); clip_grad_norm_(net.parameters(), 2)"),
    "two networks in turn": (
        "judging.zero_grad(); loss(judge).backward(); clip(judge); judging.step()",
        "opt.zero_grad(); (loss() - loss(judge)).backward(); clip(); opt.step()",
    ),
    "of a part without gradients": (
        "opt.zero_grad(); judging.zero_grad(); loss().backward()",
        "clip(); clip_grad_norm_(judge.parameters(), 1.0)",
        "opt.step(); judging.step()",
    ),
    "and kept": ("loss().backward()", "opt.step()", "clip()"),
    "and scaled": (
        "loss().backward(); opt.step(); clip()",
        "for p in net.parameters(): p.grad *= 0.9",
        "if turn > 99: opt.zero_grad()",
    ),
    "for somebody else": (
        "opt.zero_grad(); loss().backward(); opt.step()",
        "clip(); sent = [p.grad.clone() for p in net.parameters()]",
    ),
    "for somebody who asks by name": (
        "opt.zero_grad(); loss().backward(); opt.step(); clip()",
        "sent = [getattr(p, 'grad').norm() for p in net.parameters()]",
    ),
    "for somebody who asks a parameter by name": (
        "opt.zero_grad(); loss().backward(); opt.step(); clip()",
        "sent = net.weight.grad.norm()",
    ),
    "for a function that calls a parameter so": (
        "opt.zero_grad(); loss().backward(); opt.step(); clip()",
        "shown = (lambda w: w.grad)(net.weight)",
    ),
    "for its norm": ("opt.zero_grad()", "loss().backward()", "opt.step()", "n = clip_grad_norm_(net.parameters(), 1)"),
    "of a part that is frozen": (
        "for p in judge.parameters(): p.requires_grad_(False)",
        "loss(judge).mul(1).add(loss()).backward()",
        "clip(judge)",
        "if turn % 2: opt.step(); opt.zero_grad()",
    ),
    "at every second turn": (
        "loss().backward()",
        "if turn % 2: clip(); opt.step(); opt.zero_grad()",
    ),
}  # fmt: skip


def findings(lines):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run("\n    ".join(("for turn in range(6):", *lines)))
        assert notebook.errors == [None, None]
        return [(slug, severity) for _, slug, _, severity in notebook.findings()]


@pytest.mark.parametrize("lines", FOUND.values(), ids=FOUND)
def test_clips_without_a_use_are_found(lines):
    assert ("clip-after-step", "warning") in findings(lines)


@pytest.mark.parametrize("lines", SILENT.values(), ids=SILENT)
def test_clips_that_a_step_uses_are_not(lines):
    assert "clip-after-step" not in [slug for slug, _ in findings(lines)]
