"""The user's own name of the loss stands in what is said of its input."""

import pytest

from tests.cells import a_notebook

SETUP = """
import torch
from torch import nn
net, x = nn.Linear(3, 2), torch.rand(4, 3)
rows = {"class": torch.tensor([0, 1, 1, 0]), "yes": torch.rand(4, 2).round()}
criterion, exists, again = nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss(), nn.CrossEntropyLoss()
"""


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("criterion(net(x).softmax(1), rows['class'])", "and `criterion` (CrossEntropyLoss) does it again, so"),
        ("exists(net(x).sigmoid(), rows['yes'])", "twice: `exists` (BCEWithLogitsLoss) does so itself"),
        ("nn.functional.cross_entropy(net(x).softmax(1), rows['class'])", "been through a softmax already"),
        ("sum(one(net(x).softmax(1), rows['class']) for one in (criterion, again))", "been through a softmax already"),
    ],
)
def test_a_loss_is_called_by_its_name_if_there_is_one(loss, said):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(f"loss = {loss}\nloss.backward()")
    (finding,) = run.findings
    assert said in finding.message
    assert ("(CrossEntropyLoss)" in finding.message) == loss.startswith("criterion")
