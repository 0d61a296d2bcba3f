"""Values read in each step, from facts that say `cuda:0`."""

import pytest

from tests.fakes import a_backward, a_cell, a_count, a_forward, a_run, a_step
from torch_inspector.pitfalls import find_pitfall

CHECK = find_pitfall("scalar-read-every-step").check
LOOP = """\
for rows in loader:
    loss = model(rows).mean()
    loss.backward()
    optimizer.step()
    {read}
"""


def found(read, *, device="cuda:0", steps=50, duration_s=0.1, source=LOOP, line_offset=0):
    text = source.format(read=read)
    facts = (
        a_forward(input_devices=(device,)),
        a_backward(line=3 + line_offset),
        a_step(line=4 + line_offset),
        a_count("backward", steps),
        a_count("step", steps),
    )
    run = a_run(*facts, cell=a_cell(text, line_offset=line_offset), duration_s=duration_s)
    return [(finding.line, finding.evidence[0].value) for finding in CHECK(run)]


FOUND = {
    "item": ("total += loss.item()", 1),
    "a list": ("losses.append(loss.item())", 1),
    "all of them": ("seen += loss.tolist() + loss.cpu().numpy()", 2),
    "a test": ("if loss.item() > 3: break", 1),
    "twice": ("a, b = loss.item(), rows.sum().item()", 2),
}
QUIET = {
    "nothing": "pass",
    "detached": "total += loss.detach()",
    "now and then": "if step % 100 == 0: print(loss.item())",
    "on request": "if verbose: print(loss.item())",
    "a function for later": "log = lambda: loss.item()",
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    read, count = FOUND[name]
    assert found(read) == [(5, count)]


@pytest.mark.parametrize("name", QUIET)
def test_silent(name):
    assert found(QUIET[name]) == []


def test_on_the_host_it_costs_nothing():
    assert found("total += loss.item()", device="cpu") == []


def test_one_read_in_a_long_step_is_cheap():
    assert found("total += loss.item()", duration_s=5.0) == []
    assert found("a = [loss.item(), loss.item(), rows.max().item(), rows.min().item()]", duration_s=5.0) == [(5, 4)]


def test_a_few_steps_are_a_try():
    assert found("total += loss.item()", steps=4) == []


def test_after_the_loop_it_is_right():
    assert found("pass\nprint(loss.item())") == []


def test_lines_are_as_typed():
    assert found("total += loss.item()", line_offset=2) == [(7, 1)]
