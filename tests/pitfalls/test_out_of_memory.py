"""Memory that ran out, really and from messages, and failures that are none of it."""

from dataclasses import replace

import pytest

from tests.cells import a_notebook
from tests.fakes import a_place, a_run, an_error
from torch_inspector.account import MemoryReport, MemoryRow
from torch_inspector.facts import ShortageFact
from torch_inspector.pitfalls.memory.out_of_memory import check

GB = 1 << 30
SETUP = """
import torch
from torch import nn
photos = torch.ones(1024, 1024)
def attempt(rows):
    batch = torch.ones(2048, 1024)
    return torch.empty(rows, 1024)
"""


def found(*cells):
    """Findings of the last cell, and the slugs of all."""
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        last = notebook.runs[-1]
        assert last is not None
        own = [one for one in last.findings if one.slug == "out-of-memory"]
        return own, {slug for _, slug, _, _ in notebook.findings()}


def test_the_host_really_runs_out():
    (finding,), slugs = found("table = attempt(10**12)")
    assert slugs == {"out-of-memory"}
    assert (finding.line, finding.severity) == (7, "error")
    assert "3,725 TB" in finding.message
    assert "`torch.empty(rows, 1024)`" in finding.message
    assert "batch in attempt (8.00 MB)" in finding.message
    assert "8.00 MB are kept by this traceback alone" in finding.message
    evidence = {one.label: one.value for one in finding.evidence}
    assert evidence["photos"] == 4 << 20
    assert evidence["asked for"] == 4 * 1024 * 10**12


def test_an_operation_inside_torch():
    (finding,), _ = found("layer = nn.Linear(10**8, 10**8)")
    assert finding.line == 1
    assert "torch.nn.modules.linear.Linear" in finding.message


def test_what_it_was_raised_from():
    cell = """
def load():
    try:
        return attempt(10**12)
    except RuntimeError as error:
        raise ValueError("could not load") from error
load()
"""
    (finding,), _ = found(cell)
    assert finding.line == 7
    assert "cpu" in finding.message


def test_while_another_was_handled():
    (finding,), _ = found("try:\n    attempt(10**12)\nexcept RuntimeError:\n    print(undefined)")
    assert "3,725 TB" in finding.message


QUIET = {
    "caught": "try:\n    attempt(10**12)\nexcept RuntimeError:\n    table = None",
    "caught, then another cell fails": "try:\n    attempt(10**12)\nexcept RuntimeError:\n    table = None\n1 / 0",
    "too many elements to count": "torch.empty(10**11, 10**11)",
    "a mismatch": "photos @ torch.ones(3, 3)",
    "a text that only says so": "raise ValueError('CUDA out of memory. Tried to allocate 2.00 GiB.')",
    "a plain MemoryError": "raise MemoryError('you tried to allocate too much')",
    "a wish": "raise RuntimeError('tried to allocate seats')",
}


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(QUIET[name])[0] == []


def shortage(**changes):
    fact = ShortageFact("cuda:0", 2 * GB, 80 * GB, GB, 78 * GB, 70 * GB, GB // 2, a_place(2), "features @ weights")
    return fact._replace(**changes)


def the_finding(fact, *rows):
    run = a_run(error=an_error("…", kind="OutOfMemoryError", shortage=fact))
    (finding,) = check(replace(run, account=MemoryReport(rows)))
    return finding


def a_row(path, kind, nbytes, device="cuda:0"):
    return MemoryRow(path, kind, device, nbytes)


def test_holders_by_name_and_what_gives_most_back():
    finding = the_finding(
        shortage(),
        *(a_row(f"losses[{i}] (its graph)", "activation", 5 * GB) for i in range(4)),
        a_row("photos", "tensor", 6 * GB),
        a_row("on_host", "tensor", 60 * GB, "cpu"),
        a_row("Out[4]", "IPython", 3 * GB),
        *(a_row(f"optimizer.state[net.{name}]", "optimizer state", 9 * GB) for name in ("weight", "bias")),
        a_row("net.weight.grad", "gradient", 4 * GB),
    )
    assert "activations behind losses (20.0 GB) and state of optimizer (18.0 GB)" in finding.message
    assert "1.00 GB were free" in finding.message
    assert finding.fix.startswith("keep losses without history (.item() or .detach()) (20.0 GB); del photos (6.00 GB)")
    labels = [one.label for one in finding.evidence]
    assert "on_host" not in labels
    assert "gradients of net" in labels


def test_without_an_account_the_allocation_is_told():
    (finding,) = check(a_run(error=an_error("…", kind="OutOfMemoryError", shortage=shortage())))
    assert "2.00 GB more on cuda:0" in finding.message
    assert "held by" not in finding.message


def test_memory_in_pieces():
    finding = the_finding(shortage(unallocated_nbytes=5 * GB))
    assert "5.00 GB are reserved but free only in pieces (fragmentation)" in finding.message
    assert "expandable_segments" in finding.fix
    assert "fragmentation" not in the_finding(shortage()).message


def test_more_than_there_is():
    finding = the_finding(shortage(asked_nbytes=90 * GB, unallocated_nbytes=95 * GB))
    assert "it has 80.0 GB in all" in finding.message
    assert "shapes" in finding.fix


def test_what_only_the_traceback_keeps():
    finding = the_finding(shortage(), a_row("sys.last_value, line 3 in forward: hidden", "exception", 9 * GB))
    assert "hidden in forward (9.00 GB)" in finding.message
    assert "9.00 GB are kept by this traceback alone" in finding.message
    assert finding.fix.startswith("%torchcheck free --yes --traceback (9.00 GB)")


def test_what_no_expression_leads_to_has_no_remedy():
    cycle = a_row("a reference cycle, freed by the next collection", "cycle", 9 * GB)
    finding = the_finding(shortage(), cycle, a_row("later (closure over cached)", "closure", 8 * GB))
    assert "a reference cycle, freed by the next collection (9.00 GB)" in finding.message
    assert finding.fix == "smaller batches, with accumulated gradients"
