"""Means, norms and softmaxes of whole numbers; the fix is pasted and runs."""

import pytest

from tests.cells import a_notebook

SETUP = """\
import torch
import torch.nn.functional as F
torch.manual_seed(0)
hits, labels = torch.tensor([True, False, True]), torch.tensor([1, 2, 2])
img, logs = torch.randint(0, 256, (4, 4), dtype=torch.uint8), {"n": torch.arange(4)}"""


@pytest.mark.parametrize(
    ("statement", "fix"),
    [
        ("a = (labels == hits).mean()", "a = (labels == hits).float().mean()"),
        ("a = hits.mean().item()", "a = hits.float().mean().item()"),
        ("a = torch.mean(img)", "a = torch.mean(img.float())"),
        ("a = logs['n'].std(0)", "a = logs['n'].float().std(0)"),
        ("a = torch.var(labels + 1)", "a = torch.var((labels + 1).float())"),
        ("a = torch.softmax(labels, dim=0)", "a = torch.softmax(labels.float(), dim=0)"),
        ("a = labels.norm()", "a = labels.float().norm()"),
        ("a = F.log_softmax(labels, 0)", "a = F.log_softmax(labels.float(), 0)"),
    ],
)
def test_the_fix_is_the_statement_with_another_type(statement, fix):
    with a_notebook() as notebook:
        notebook.run(SETUP)
        (finding,) = notebook.run(statement).findings
        assert (finding.slug, finding.line, finding.fix) == ("whole-numbers-refused", 1, fix)
        assert notebook.run(finding.fix).error is None


def test_an_operation_that_wants_whole_numbers():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run("a = img.float() & img")
        assert "whole-numbers-refused" not in [one.slug for one in run.findings]
