"""Functions that go through NumPy, written again so that they stay in PyTorch."""

from typing import Any

import numpy as np
import pytest
import torch

from torch_inspector.facts.in_torch import in_torch

HEAD = "def made(q, d=4, w=None):\n    "
STAYS = {
    "softmax": (
        "s = q.detach().numpy()\n    s = np.exp(s / np.sqrt(q.shape[-1]))\n"
        "    p = s / np.sum(s, axis=1, keepdims=True)\n    return torch.from_numpy(p)"
    ),
    "number": "c = np.log(2) * q.detach().numpy()\n    return torch.from_numpy(c).mean()",
    "axis": "c = np.cumsum(q.detach().numpy()[:, 0], axis=0)\n    c = torch.from_numpy(c)\n    return (c - 1) ** 2",
    "list given": (
        "y = torch.as_tensor([1.0, 2.0])\n    c = q.detach().numpy().sum(axis=1)\n    return y * torch.from_numpy(c)"
    ),
    "stack": "c = q.detach().numpy()\n    return torch.tensor(np.stack([c, c * 2], axis=1), dtype=torch.float32)",
    "method": "c = q.detach().cpu().numpy().copy()\n    return torch.as_tensor(np.where(c > 0, c, 0.1 * c)).mean()",
    "numbers in a row": (
        "c = q.detach().cpu().numpy()\n    w = (np.arange(4)[None] - c[:, :1]) ** 2\n"
        "    return torch.tensor((c * w).mean())"
    ),
    "in place": (
        "c = q.detach().numpy() * np.pi\n    c -= np.amax(c, axis=1, keepdims=True)\n    return torch.from_numpy(c)"
    ),
}
LEFT = {
    "a list": "a = np.mean([q.detach().numpy().sum(), 1.0])\n    return torch.tensor(a)",
    "an unknown name": "s = q.detach().numpy()\n    return torch.from_numpy(s / np.sqrt(d))",
    "an array of the caller": "s = q.detach().numpy()\n    return torch.from_numpy(np.matmul(s, w))",
    "all in a row": "c = np.cumsum(q.detach().numpy())\n    return torch.from_numpy(c)",
    "another spread": "c = q.detach().numpy().std(axis=0)\n    return torch.from_numpy(c)",
    "a number": "c = q.detach().numpy()\n    return torch.tensor(float(c.sum()))",
    "numbers of its own": "c = q.detach().numpy()\n    return torch.from_numpy(c * np.linspace(0, 1, 4))",
    "two of it": "a, b = q.detach().numpy()\n    return torch.from_numpy(np.exp(a))",
    "another type": "c = q.detach().numpy().astype('float64')\n    return torch.from_numpy(c)",
}


def line_of(body):
    """The last line with `.numpy()`."""
    return max(number for number, text in enumerate((HEAD + body).splitlines(), 1) if ".numpy(" in text)


def result(code, q):
    names: dict[str, Any] = {"np": np, "torch": torch}
    exec(code, names)  # noqa: S102  (the functions above)
    return names["made"](q)


@pytest.mark.parametrize("name", STAYS)
def test_what_is_pasted_gives_the_same_with_its_history(name):
    body = STAYS[name]
    lines = (HEAD + body).splitlines()
    for one in in_torch(HEAD + body, line_of(body)).splitlines():
        text, _, number = one.partition("  # line ")
        lines[int(number) - 1] = f"    {text}"
    q = torch.randn(2, 4, requires_grad=True)
    new = result("\n".join(lines), q)
    assert torch.allclose(new.double(), result(HEAD + body, q).double(), atol=1e-5)
    assert new.requires_grad


@pytest.mark.parametrize("name", LEFT)
def test_what_torch_may_do_otherwise_is_left_to_the_user(name):
    assert in_torch(HEAD + LEFT[name], line_of(LEFT[name])) == ""
