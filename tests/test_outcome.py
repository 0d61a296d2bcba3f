from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes import SOURCE, a_cell, a_count, a_graph, a_place, a_run, a_snapshot, an_error
from torch_inspector import pitfalls
from torch_inspector.findings import Evidence, Finding
from torch_inspector.outcome import COUNTED, MATCHED, TELLING, Change, outcome_of, same_cell

PITFALLS = Path(pitfalls.__file__).parent

KEPT = Finding(
    "`losses` keeps graphs.",
    subject="losses",
    line=2,
    evidence=(Evidence("step at line", 4), Evidence("activations", 3 << 20, "bytes"), Evidence("graphs", 300, "count")),
    severity="warning",
    slug="graph-retained-in-list",
    code="losses.append(loss)",
)
HINT = Finding("the loader waits", slug="loader-waits", severity="hint")
DONE = (("forward", 2), ("backward", 3), ("step", 4))
EDITED = SOURCE.replace("loss.backward()", "loss.backward()\n    print(loss)")


def a_cell_run(*findings, number=1, source=SOURCE, identity=None, report=False, turns=4, **changes):
    """A cell that trains for some turns."""
    cell = a_cell(source, number=number, id=identity, wants_report=report)
    done = [a_count(kind, turns, line)._replace(place=a_place(line, cell=number)) for kind, line in DONE]
    return a_run(*done, cell=cell, findings=findings, **changes)


def mended(*findings, number=2, source=EDITED, **changes):
    """The same, edited."""
    return a_cell_run(*findings, number=number, source=source, **changes)


def rerun(first, second):
    """What became of the findings of the first run in the second."""
    return outcome_of(replace(second, earlier=(first,)))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"identity": "a"}, {"identity": "a", "source": "something = else_()"}, True),
        ({"identity": "a"}, {"identity": "b"}, False),
        ({}, {}, True),
        ({}, {"source": EDITED}, True),
        ({"identity": "a"}, {"source": "%%torchcheck\n# mended\n" + EDITED}, True),
        ({}, {"source": "evaluate(model)"}, False),
        ({"source": "train()"}, {"source": "train()"}, True),
        ({"source": "train()"}, {"source": "train(1)"}, False),
        ({"source": "import torch\na()\nb()\nc()"}, {"source": "import torch\nd()\ne()\nf()"}, False),
        ({"source": ""}, {"source": ""}, False),
    ],
)
def test_cells_are_told_by_id_or_text(one, other, same):
    assert same_cell(a_cell_run(**one), a_cell_run(**other)) is same


def test_first_run_and_clean_runs_have_no_outcome():
    assert outcome_of(a_cell_run(KEPT)) is None
    assert rerun(a_cell_run(), a_cell_run()) is None
    assert rerun(a_cell_run(KEPT, source="train()"), a_cell_run()) is None


def test_first_finding_of_a_cell_that_was_clean_is_new():
    outcome = rerun(a_cell_run(), a_cell_run(KEPT))
    assert (outcome.new, outcome.still, outcome.fixed) == ((KEPT,), (), ())


def test_gone_finding_is_fixed_with_the_number_before_and_after():
    held = a_snapshot(a_graph(saved_nbytes=3 << 20))
    outcome = rerun(a_cell_run(KEPT, after=held, number=4), mended(number=5))
    assert outcome.cell == 4
    assert [(fate.finding, fate.change) for fate in outcome.fixed] == [
        (KEPT, Change("activations", 3 << 20, 0, "bytes"))
    ]
    assert (outcome.still, outcome.new) == ((), ())


def test_number_that_was_not_measured_twice_is_not_told():
    outcome = rerun(a_cell_run(KEPT, after=a_snapshot(a_graph(saved_nbytes=5 << 20))), mended())
    assert outcome.fixed[0].change is None


def test_number_that_nobody_can_measure_again_is_told_alone():
    one = replace(KEPT, evidence=(Evidence("classes", 3, "count"), Evidence("left over", 2, "count")))
    assert rerun(a_cell_run(one), mended()).fixed[0].change == Change("left over", 2, None, "count")


def test_what_ended_the_cell_and_does_not_any_more_is_told():
    failed = a_cell_run(replace(KEPT, cell=1), error=an_error())
    assert rerun(failed, mended()).fixed[0].failed


def test_clean_cell_is_told_once():
    first, second = a_cell_run(KEPT, number=1), mended()
    third = replace(mended(number=3), earlier=(first, second))
    assert rerun(first, second).fixed
    assert outcome_of(third) is None


def test_found_again_is_still_there_with_what_changed():
    fewer = replace(KEPT, line=3, evidence=(Evidence("step at line", 5), Evidence("activations", 1 << 20, "bytes")))
    outcome = rerun(a_cell_run(KEPT), a_cell_run(fewer, source=EDITED))
    assert [(fate.finding, fate.change) for fate in outcome.still] == [
        (fewer, Change("activations", 3 << 20, 1 << 20, "bytes"))
    ]
    assert not outcome.fixed


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [(100, 104, False), (100, 110, True), (0, 1, True), (float("nan"), float("nan"), False), (0.0, 0.0, False)],
)
def test_noise_is_no_change(before, after, changed):
    old, now = (replace(KEPT, evidence=(Evidence("took", value, "s"),)) for value in (before, after))
    fate = rerun(a_cell_run(old), a_cell_run(now)).still[0]
    assert (fate.change is not None) is changed


def test_bytes_and_counts_are_told_before_times():
    old, now = (
        replace(KEPT, evidence=(Evidence("took", n, "s"), Evidence("steps", n, "count"), Evidence("held", n, "bytes")))
        for n in (1, 2)
    )
    assert rerun(a_cell_run(old), a_cell_run(now)).still[0].change.label == "held"


def test_renamed_variable_is_the_same_finding():
    outcome = rerun(a_cell_run(KEPT), a_cell_run(replace(KEPT, subject="history", code="history.append(loss)")))
    assert [fate.finding.subject for fate in outcome.still] == ["history"]


def test_of_several_the_one_about_the_same_thing_stays():
    other = replace(KEPT, subject="scores")
    outcome = rerun(a_cell_run(KEPT, other), mended(other))
    assert [fate.finding for fate in outcome.fixed] == [KEPT]
    assert [fate.finding for fate in outcome.still] == [other]


def test_another_mistake_is_new():
    outcome = rerun(a_cell_run(KEPT), mended(HINT))
    assert (outcome.new, len(outcome.fixed)) == ((HINT,), 1)


@pytest.mark.parametrize("label", sorted({*COUNTED, *MATCHED, *TELLING}))
def test_counts_are_called_as_the_checks_call_them(label):
    assert any(f'"{label}"' in file.read_text(encoding="utf-8") for file in PITFALLS.glob("*/*.py"))


@pytest.mark.parametrize(
    "changes",
    [
        {"error": an_error()},
        {"after": a_snapshot(complete=False)},
        {"unjudged": frozenset({KEPT.slug})},
        {"turns": 3},
        {"turns": 0},
        {"source": SOURCE},
    ],
    ids=["the cell failed", "the look was not finished", "muted", "fewer turns", "none", "as it was"],
)
def test_nothing_is_called_fixed_that_was_not_done_again(changes):
    outcome = rerun(a_cell_run(replace(KEPT, code="optimizer.step()"), identity="a"), mended(identity="a", **changes))
    assert not outcome.fixed


def test_code_that_was_left_out_is_gone_with_its_mistake():
    first = a_cell_run(KEPT, identity="a")
    outcome = rerun(first, mended(identity="a", source="print('other')", turns=0))
    assert ([fate.finding for fate in outcome.gone], outcome.fixed) == ([KEPT], ())


def test_what_was_not_said_to_be_fixed_is_still_there_when_it_is_found_again():
    there = replace(KEPT, code="loss.backward()")
    first, second = a_cell_run(there, number=1), mended(turns=1)
    third = replace(mended(there, number=3), earlier=(first, second))
    assert [fate.finding for fate in outcome_of(third).still] == [there]
    assert [fate.finding for fate in outcome_of(replace(third, findings=())).fixed] == [there]


def test_less_of_what_should_not_be_there_is_not_fixed():
    """Two tensors with a history in place of forty."""
    many, few = (a_snapshot(a_graph(tensor_count=count)) for count in (40, 2))
    kept = replace(KEPT, evidence=(Evidence("tensors with history", 40, "count"),))
    assert not rerun(a_cell_run(kept, after=many), mended(after=few)).fixed
    assert rerun(a_cell_run(kept, after=many), mended()).fixed[0].change.after == 0


@pytest.mark.parametrize(("fix", "fixed"), [("SGD(parameters, lr=0.1)", True), ("optimizer.zero_grad()", False)])
def test_other_numbers_alone_mend_only_what_the_fix_is_about(fix, fixed):
    finding = replace(HINT, line=4, code="optimizer.step()", fix=fix)
    first = a_cell_run(finding, source="sgd = SGD(parameters, lr=5)\n" + SOURCE)
    assert bool(rerun(first, mended(source="sgd = SGD(parameters, lr=0.1)\n" + SOURCE)).fixed) is fixed


@pytest.mark.parametrize(("rate", "rows", "fixed"), [(0.1, 64, True), (5, 1, False), (5, 64, False)])
def test_numbers_of_another_cell_count_as_its_own(rate, rows, fixed):
    finding = replace(HINT, line=4, code="optimizer.step()", fix="lr=0.1 or less")
    before = a_run(cell=a_cell("x = rand(64)\nsgd = SGD(parameters, lr=5)\n", number=1, id="b"))
    again = a_run(cell=a_cell(f"x = rand({rows})\nsgd = SGD(parameters, lr={rate})\n", number=3, id="b"))
    last = a_cell_run(finding, number=2, identity="a")
    outcome = outcome_of(replace(a_cell_run(number=4, identity="a"), earlier=(before, last, again)))
    assert bool(outcome.fixed) is fixed


def test_line_that_was_moved_out_of_its_loop_may_be_fixed():
    finding = replace(HINT, line=3, code="scale = linspace(10).to(device)")
    first = a_cell_run(
        finding, source="total = 0\nfor _ in range(40):\n    scale = linspace(10).to(device)\n    loss.backward()\n"
    )
    moved = "total = 0\nscale = linspace(10).to(device)\nfor _ in range(40):\n    loss.backward()\n"
    assert rerun(first, mended(source=moved)).fixed


def test_smaller_tensors_are_no_mend_of_memory():
    small = mended(source=SOURCE + "x = 10\n")
    assert not rerun(a_cell_run(KEPT, source=SOURCE + "x = 1_000\n"), small).fixed


def test_hint_that_only_the_report_gives_is_not_fixed_by_leaving_the_report_out():
    first = a_cell_run(HINT, KEPT, report=True)
    assert [fate.finding for fate in rerun(first, mended()).fixed] == [KEPT]
    assert len(rerun(first, mended(report=True)).fixed) == 2


def test_failed_attempt_in_between_is_passed_over():
    failed = a_cell_run(number=2, error=an_error("typo"))
    third = replace(mended(number=3), earlier=(a_cell_run(KEPT, number=1), failed))
    assert outcome_of(third).cell == 1
