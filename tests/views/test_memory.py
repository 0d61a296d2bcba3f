"""The account of memory as a card."""

from torch_inspector.account import DeviceTotal, HolderRow, HoldersReport, MemoryReport, MemoryRow
from torch_inspector.views.card import Bars, Table
from torch_inspector.views.html import to_html
from torch_inspector.views.memory import grouped, holders_card, memory_card
from torch_inspector.views.text import to_text

MB = 1 << 20


def a_row(path="x", kind="tensor", nbytes=MB, **fields):
    return MemoryRow(path, kind, fields.pop("device", "cpu"), nbytes, **fields)


def tables(card):
    return [part for part in card.parts if isinstance(part, Table)]


def test_elements_of_one_list_are_one_holder():
    rows = [a_row(f"losses[{n}] (its graph)", "activation") for n in (10, 2, 0)] + [a_row("x", nbytes=5)]
    groups = grouped(rows)
    assert [(group.path, group.nbytes) for group in groups] == [
        ("losses[0] to losses[10] (its graph)", 3 * MB),
        ("x", 5),
    ]


def test_two_elements_stay_apart():
    assert [group.path for group in grouped([a_row("a[0]"), a_row("a[1]", nbytes=5)])] == ["a[0]", "a[1]"]


def test_bars_are_as_long_as_their_share_of_the_largest():
    card = memory_card(MemoryReport((a_row(), a_row("y", "parameter", MB // 4))))
    (bars,) = [part for part in card.parts if isinstance(part, Bars)]
    assert bars.rows == (("tensor", "1.00 MB"), ("parameter", "256 KB"))
    assert bars.lengths == (1_000, 250)


def test_what_is_not_explained_is_a_number():
    report = MemoryReport((a_row(device="cuda:0"),), (DeviceTotal("cuda:0", 4 * MB, 10 * MB, 3 * MB, 2 * MB),))
    assert (report.explained_bytes("cuda:0"), report.unexplained_bytes("cuda:0")) == (MB, 3 * MB)
    text = to_text(memory_card(report))
    assert "cuda:0: 4.00 MB in live tensors, 3.00 MB of it not explained." in text
    assert "Reserved 10.0 MB, of it 6.00 MB free inside the cache" in text.replace("\n  ", " ")
    assert "Other processes use 2.00 MB." in text.replace("\n  ", " ")


def test_a_view_says_what_it_keeps():
    (table,) = tables(memory_card(MemoryReport((a_row("small", shown_nbytes=12),))))
    assert table.rows[0] == ("1", "small", "tensor", "1.00 MB", "", "shows 12 B of it")


def test_cells_that_made_them_are_named():
    rows = tuple(a_row(f"outs[{n}]") for n in range(3))
    (table,) = tables(memory_card(MemoryReport(rows), {"outs[0]": 4, "outs[2]": 6}))
    assert table.rows[0][4:] == ("4 to 6", "3 holders")


def test_an_empty_heap_says_so():
    assert "No tensor holds memory." in to_text(memory_card(MemoryReport()))


def test_foreign_memory_is_beside_the_sum():
    report = MemoryReport((a_row(),), foreign=(a_row("array", "another library"),))
    assert report.explained_bytes("cpu") == MB
    assert "`array` share 1.00 MB of another library" in to_text(memory_card(report))


def test_names_of_the_user_are_no_markup():
    page = to_html(memory_card(MemoryReport((a_row("<script>alert(1)</script>"),))))
    assert "<script" not in page


def test_holders_with_the_lines_that_let_go():
    rows = (HolderRow("x", "name", "del x"), HolderRow("loss (its graph)", "activation", ""))
    text = to_text(holders_card(HoldersReport("x", MB, "cpu", rows)))
    assert "2 holders of `x`, 1.00 MB on cpu" in text
    assert "del x" in text


def test_nothing_holds_it():
    assert "Nothing that Python can see holds it." in to_text(holders_card(HoldersReport("x")))
