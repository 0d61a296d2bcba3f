from dataclasses import replace

from tests.fakes import SOURCE, a_cell, a_graph, a_run, a_snapshot, an_error
from tests.test_outcome import HINT, KEPT, a_cell_run, mended
from torch_inspector.findings import Evidence
from torch_inspector.views.card import Card, Line
from torch_inspector.views.explain import Drawing, run_card


def rerun(first, second):
    return run_card(Drawing.of(replace(second, earlier=(first,)), []))


def test_cell_that_became_clean_is_one_quiet_line():
    held = a_snapshot(a_graph(saved_nbytes=3 << 20))
    card = rerun(a_cell_run(KEPT, number=4, after=held), mended(number=5))
    what = "graph-retained-in-list (`losses`, activations: 3.00 MB before, 0 B now)"
    assert card == Card(f"✓ torch_inspector, cell 5: fixed: {what}", "calm", ())


def test_short_line_says_since_when():
    card = rerun(a_cell_run(replace(KEPT, slug="x", evidence=()), number=4), mended(number=5))
    assert card.title == "✓ torch_inspector, cell 5: fixed since cell 4: x (`losses`)"


def test_number_alone_and_failures_are_told():
    one = replace(KEPT, evidence=(Evidence("steps like this, of those looked at", 3, "count"),))
    assert rerun(a_cell_run(one), mended()).title.endswith("(`losses`, steps like this: 3 before)")
    failed = a_cell_run(replace(KEPT, cell=1), error=an_error())
    assert rerun(failed, mended()).title.endswith("(`losses`, failed before, runs now)")


def test_name_is_said_once():
    same = replace(KEPT, line=3)
    card = rerun(a_cell_run(KEPT, same), mended())
    assert card.title.count(KEPT.slug) == 1
    assert card.title.endswith("(`losses`, 2 places)")


def test_code_that_was_left_out_is_gone():
    first = a_cell_run(KEPT, number=4, identity="a")
    card = rerun(first, mended(number=5, identity="a", source="print('other')", turns=0))
    assert card.title == "✓ torch_inspector, cell 5: gone, with its code: graph-retained-in-list (`losses`)"


def test_one_line_leaves_out_numbers_that_would_be_cut():
    others = (replace(HINT, slug="x" * 40), replace(HINT, slug="y" * 20))
    held = a_snapshot(a_graph(saved_nbytes=3 << 20))
    card = rerun(a_cell_run(*others, KEPT, number=4, after=held), mended(number=5))
    assert card.title.endswith(f"fixed: {'x' * 40}; {'y' * 20}; and 1 more")
    assert len(card.title) <= 110


def test_many_fixed_findings_stay_one_line():
    first = a_cell_run(*(replace(HINT, slug=f"kind-{number}") for number in range(9)), number=1)
    assert rerun(first, mended(number=2)).title.endswith("kind-0; kind-1; kind-2; and 6 more")


def test_fixed_still_there_and_new_are_told_apart():
    new = replace(HINT, slug="another")
    card = rerun(a_cell_run(KEPT, HINT, number=4), mended(KEPT, new, number=5))
    assert card.parts[0] == Line("✓ fixed since cell 4: loader-waits")
    assert [part.lead for part in card.parts[1:]] == ["warning, line 2, still there", "hint, new"]


def test_number_that_changed_is_told():
    fewer = replace(KEPT, evidence=(replace(KEPT.evidence[1], value=1 << 20),))
    card = rerun(a_cell_run(replace(KEPT, cell=5)), a_cell_run(replace(fewer, cell=5), number=5))
    assert card.parts[0].parts[0] == Line("activations: 3.00 MB before, 1.00 MB now")


def test_first_run_says_nothing_about_it():
    card = run_card(Drawing.of(a_run(cell=a_cell(SOURCE), findings=(KEPT,)), []))
    assert card.parts[0].lead == "warning, line 2"
