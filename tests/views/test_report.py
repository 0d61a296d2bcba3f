from dataclasses import replace

from tests.fakes import a_place, a_run, a_snapshot, a_trace, an_error
from tests.views.samples import PITFALL, RUN
from torch_inspector.account import MemoryReport, MemoryRow
from torch_inspector.views.card import Line, Table
from torch_inspector.views.explain import Drawing
from torch_inspector.views.report import report_card, state_card


def table_of(card, caption):
    return next(part for part in card.parts if isinstance(part, Table) and part.caption.startswith(caption))


def lines_of(card):
    return [part.text for part in card.parts if isinstance(part, Line)]


def test_report_shows_what_is_new():
    card = report_card(Drawing.of(RUN, [PITFALL]))
    assert [row[0] for row in table_of(card, "New tensors").rows] == ["batch", "history['loss'][3]"]
    assert {row[0] for row in table_of(card, "New graphs").rows} == {"losses", "history['loss']"}


def test_same_path_with_another_tensor_is_new():
    before = replace(RUN.before, tensors=(RUN.before.tensors[0]._replace(key=99),))
    card = report_card(Drawing.of(replace(RUN, before=before), []))
    assert "old" in {row[0] for row in table_of(card, "New tensors").rows}


def test_quiet_cell_has_a_report_too():
    card = report_card(Drawing.of(a_run(duration_s=0.5), []))
    assert card.title == "torch_inspector, cell 1: report, no findings"
    assert "No findings." in lines_of(card)


def test_end_of_the_cell_is_told():
    failed = a_run(error=an_error("shapes differ"), trace=a_trace(graph_nodes_made=1))
    assert "Ended at line 2 with RuntimeError: shapes differ" in lines_of(report_card(Drawing.of(failed, [])))
    assert lines_of(report_card(Drawing.of(failed, [])))[0].endswith("more; autograd made 1 node.")
    stopped = a_run(error=an_error(interrupted=True, place=a_place(9, cell=4)))
    assert "Interrupted at line 9 of cell 4." in lines_of(report_card(Drawing.of(stopped, [])))


def test_unfinished_look_says_at_least():
    card = report_card(Drawing.of(replace(RUN, after=replace(RUN.after, complete=False)), []))
    assert any("time limit" in line for line in lines_of(card))
    assert table_of(card, "Modules").caption == "Modules (at least 1)"


def test_state_has_all_tables():
    captions = [part.caption for part in state_card(RUN.after).parts if isinstance(part, Table)]
    tables = ["Memory", "Modules", "Optimizers", "Graphs alive", "Kept by the notebook", "Largest tensors"]
    assert captions == tables


def test_state_of_nothing_is_a_sentence():
    assert lines_of(state_card(a_snapshot())) == ["No tensors, modules or optimizers were found."]


def test_the_account_of_memory_ends_the_report():
    rows = (MemoryRow("batch", "tensor", "cpu", 6 << 20), MemoryRow("net.weight", "parameter", "cpu", 2 << 20))
    card = report_card(Drawing.of(replace(RUN, account=MemoryReport(rows)), []))
    assert "cpu: 8.00 MB in live tensors, 0 B of it not explained." in lines_of(card)
    assert [row[1] for row in table_of(card, "Largest holders").rows] == ["batch", "net.weight"]
    assert "Largest holders" not in {
        part.caption for part in report_card(Drawing.of(RUN, [])).parts if isinstance(part, Table)
    }
