"""The line that steps in the last turn, too, in the names of the loop."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import torch
from torch import nn
net, xs, k, n = nn.Linear(3, 1), torch.randn(50, 3), 4, 10
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches, others = xs.split(5), list(xs.split(4))
tqdm = lambda given, desc: given
def drawn():
    yield from batches
"""
LOOP = """\
for {head}:
    (net({batch}).square().mean() / k).backward()
    {test}
        opt.step(); opt.zero_grad()
"""


@pytest.mark.parametrize(
    ("head", "batch", "test", "more"),
    [
        ("step, x in enumerate(batches, 1)", "x", "if step % k == 0:", "step == len(batches)"),
        ("step, x in enumerate(batches, start=2)", "x", "if (step - 1) % k == 0:", "step - 1 == len(batches)"),
        ("i, x in enumerate(batches)", "x", "if (i + 1) % k == 0 and i > 0:", "i + 1 == len(batches)"),
        ("i, x in enumerate(tqdm(xs.split(5), desc='x'))", "x", "if not (i + 1) % k:", "i + 1 == len(xs.split(5))"),
        ("i in range(n)", "batches[i]", "if (i + 1) % k == 0:", "i + 1 == n"),
        ("i in range(1, n + 1)", "batches[i - 1]", "if i % k == 0:", "i == n"),
        (
            "i, (x, _) in enumerate(zip(batches, others))",
            "x",
            "if (i + 1) % k == 0:",
            "i + 1 == min(len(batches), len(others))",
        ),
    ],
)
def test_the_test_holds_in_the_last_turn(head, batch, test, more):
    old = test.removeprefix("if ").removesuffix(":")
    expected = f"if {f'({old})' if ' and ' in old else old} or {more}:"
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = notebook.run(LOOP.format(head=head, batch=batch, test=test)).findings
        assert (finding.slug, finding.fix.partition("  #")[0]) == ("accumulation-remainder", expected)
        assert notebook.run(LOOP.format(head=head, batch=batch, test=finding.fix)).findings == ()
        assert notebook.errors[-1] is None


@pytest.mark.parametrize("turns", ["enumerate(drawn())", "enumerate(some)", "enumerate(x for x in batches)"])
def test_without_a_length_the_step_comes_after_the_loop(turns):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        cell = "some = drawn()\n" + LOOP.format(head=f"i, x in {turns}", batch="x", test="if (i + 1) % k == 0:")
        (finding,) = notebook.run(cell).findings
        assert finding.fix.startswith("opt.step(); opt.zero_grad()  # after the loop")
