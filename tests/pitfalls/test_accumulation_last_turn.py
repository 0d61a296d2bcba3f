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


@pytest.mark.parametrize(
    "turns", ["enumerate(drawn())", "enumerate(some)", "enumerate(x for x in batches)", "enumerate(given)"]
)
def test_without_a_length_the_step_comes_after_the_loop(turns):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        cell = "some = drawn()\nfor given in [iter(batches)]: pass\n" + LOOP.format(
            head=f"i, x in {turns}", batch="x", test="if (i + 1) % k == 0:"
        )
        (finding,) = notebook.run(cell).findings
        assert finding.fix.startswith("opt.step(); opt.zero_grad()  # after the loop")


@pytest.mark.parametrize(
    ("loader", "more"),
    [
        ("DataLoader(xs, 5, shuffle=True)", " or i + 1 == len(loader):"),
        ("DataLoader(TensorDataset(xs), 5)", " or i + 1 == len(loader):"),
        ("DataLoader(Stream(), 5)", ""),
    ],
)
def test_a_loader_has_a_length_if_its_data_has(loader, more):
    start = SETUP + "from torch.utils.data import DataLoader, TensorDataset\n"
    if "Stream" in loader:
        start += "import torch.utils.data as d\nclass Stream(d.IterableDataset):\n    def __iter__(self):\n"
        start += "        return iter(xs)\n"
    loop = LOOP.format(
        head="i, x in enumerate(loader)", batch="torch.stack(list(x)).view(-1, 3)", test="if (i + 1) % k == 0:"
    )
    with a_notebook() as notebook:
        notebook.run(f"{start}loader = {loader}")
        (finding,) = notebook.run(loop).findings
        assert finding.fix.startswith(f"if (i + 1) % k == 0{more}" if more else "opt.step(); opt.zero_grad()  # after")


@pytest.mark.parametrize(
    "loop",
    [
        LOOP.format(head="i in range(n)", batch="batches[i]", test="if (i + 1) % k != 0:\n        pass\n    else:"),
        "def run(given):\n"
        + "".join(
            f"    {line}\n"
            for line in LOOP.format(
                head="i, x in enumerate(given)", batch="x", test="if (i + 1) % k == 0:"
            ).splitlines()
        )
        + "run(iter(batches))",
    ],
)
def test_a_step_beside_the_test_and_a_parameter(loop):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = notebook.run(loop).findings
        assert finding.fix.startswith("opt.step(); opt.zero_grad()  # after the loop")
