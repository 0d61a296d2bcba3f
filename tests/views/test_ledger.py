from dataclasses import replace

import pytest

from tests.fakes import a_backward, a_count, a_place, a_run, a_step, an_optimizer
from tests.views.samples import FINDING
from torch_inspector.facts import LossFact
from torch_inspector.findings import Evidence
from torch_inspector.views.ledger import ledger_parts

STEPS = replace(FINDING, cell=1)
LOSS = replace(FINDING, cell=1, line=3, subject="loss", evidence=(Evidence("loss of call 1", 4.0),))


def steps(*facts, **changes):
    """Rows and caption of the ledger."""
    run = a_run(*facts, after=[an_optimizer()], **changes)
    return [(part.caption, part.rows) for part in ledger_parts(STEPS, run)]


def losses(*values, finding=LOSS):
    facts = (LossFact(order, a_place(3), order + 1, value) for order, value in enumerate(values))
    return ledger_parts(finding, a_run(a_backward(3), *facts))


def test_steps_are_a_ledger():
    first, second = a_step(), a_step(index=2, kept_gradients=True, backward_count=2)
    third = a_step(index=3, cleared_at=a_place(1), empty_gradients=True)
    fourth = a_step(index=4, discarded_count=1, discarded_at=a_place(2, cell=9))
    assert steps(first, second, third) == [
        ("Steps", (("1", "1", "no", "fresh"), ("2", "2", "no", "old ones added"), ("3", "1", "line 1", "none")))
    ]
    thrown = ("4", "1", "line 2 of cell 9", "1 backward call thrown away")
    assert steps(fourth) == [("Steps", (thrown,))]


def test_only_the_first_steps_are_shown_and_all_are_counted():
    made = (a_step(index=number, kept_gradients=True) for number in range(1, 9))
    ((caption, rows),) = steps(*made, a_count("step", 1_000, line=4))
    assert caption == "Steps (3 of 1,000)"
    assert len(rows) == 3


@pytest.mark.parametrize("fact", [a_step(), a_step(line=9, optimizer=77, kept_gradients=True)])
def test_good_steps_and_those_of_others_need_no_ledger(fact):
    assert steps(fact) == []


def test_steps_are_those_of_the_line_also_where_an_earlier_optimizer_had_the_name():
    earlier = a_step(line=2, optimizer=77, name="optimizer")
    ((_, rows),) = steps(earlier, a_step(kept_gradients=True))
    assert rows == (("1", "1", "no", "old ones added"),)


def test_evidence_without_steps_needs_no_ledger():
    bare = replace(STEPS, evidence=())
    assert ledger_parts(bare, a_run(a_step(kept_gradients=True), after=[an_optimizer()])) == []
    assert ledger_parts(STEPS, None) == []


def test_losses_are_a_line():
    (table,) = losses(4.0, 2.0, 3.0)
    assert table.caption == "loss, as far as looked at"
    assert table.rows == (
        ("first, highest", "4", "call 1"),
        ("lowest", "2", "call 2"),
        ("last", "3", "call 3"),
    )
    assert table.curve == ((0, 1_000), (500, 0), (1_000, 500))


def test_losses_that_were_all_looked_at_need_no_remark():
    facts = [LossFact(order, a_place(3), order + 1, value) for order, value in enumerate((4.0, 2.0, 3.0))]
    (table,) = ledger_parts(LOSS, a_run(a_backward(3), a_count("backward", 3, place=a_place(3)), *facts))
    assert table.caption == "loss"


def test_losses_over_many_orders_are_drawn_in_powers_of_ten():
    (table,) = losses(4.0, 4e3, 4e6)
    assert table.caption.endswith("in powers of ten")
    assert [height for _, height in table.curve] == [0, 500, 1_000]


def test_values_that_are_not_finite_are_told_and_not_drawn():
    (table,) = losses(4.0, 5.0, 6.0, float("nan"))
    assert table.rows[-1] == ("last", "nan", "call 4")
    assert len(table.curve) == 3


def test_largest_floats_are_drawn():
    (table,) = losses(4.0, -1.7e308, 1.7e308)
    assert [height for _, height in table.curve] == [500, 0, 1_000]


@pytest.mark.parametrize("values", [(4.0,), (4.0, 3.0), (4.0, 4.0, 4.0), (4.0, float("nan"), float("inf"))])
def test_few_or_equal_losses_are_no_line(values):
    assert losses(*values) == []


def test_losses_that_the_finding_is_not_about_are_not_drawn():
    assert losses(4.0, 3.0, 2.0, finding=replace(LOSS, evidence=())) == []
    assert losses(9.0, 3.0, 2.0) == []


def test_loss_that_was_not_finite_where_the_finding_points():
    assert losses(9.0, 3.0, 2.0, float("nan"), finding=replace(LOSS, evidence=()))
