from tests.fakes import a_count, a_graph, a_memory, a_module, a_place, a_tensor
from torch_inspector.views.tables import (
    call_table,
    graph_table,
    memory_change_table,
    module_table,
    place_name,
    tensor_table,
)


def test_largest_tensors_come_first_and_views_show_what_they_keep():
    small, view = a_tensor("small", storage_nbytes=8), a_tensor("view", nbytes=4, storage_nbytes=1 << 20)
    assert [row[0] for row in tensor_table([small, view], "Tensors").rows] == ["view", "small"]
    assert tensor_table([view], "Tensors").rows[0][4:] == ("4 B of 1.00 MB", "NllLoss")


def test_entries_of_a_list_that_are_alike_are_one_row():
    losses = [a_tensor(f"losses[{number}]", shape=(), nbytes=4, storage_nbytes=4) for number in range(64)]
    table = tensor_table([*losses, a_tensor("x", storage_nbytes=8)], "New tensors")
    assert [row[0] for row in table.rows] == ["x", "losses[0] to losses[63]"]
    assert (table.rows[1][4], table.caption) == ("64 times 4 B", "New tensors")
    assert len(tensor_table(losses[:2], "New tensors").rows) == 2
    other = a_tensor("losses[64]", shape=(2,), nbytes=8, storage_nbytes=8)
    assert [row[0] for row in tensor_table([*losses, other], "t").rows] == ["losses[64]", "losses[0] to losses[63]"]


def test_long_tables_are_cut_and_say_so():
    table = tensor_table([a_tensor(f"t{number}") for number in range(30)], "New tensors", complete=False)
    assert (len(table.rows), table.caption) == (20, "New tensors (20 of at least 30)")


def test_unfinished_walk_says_at_least():
    row = graph_table([a_graph(complete=False)], "Graphs").rows[0]
    assert row[2:4] == ("at least 12", "at least 3.00 MB")


def test_mode_names_layers_in_the_other_mode():
    mixed = a_module(training=True, asleep=(("BatchNorm1d", 2), ("Dropout", 1)), trainable_count=2)
    row = module_table([mixed, a_module("")]).rows
    assert row == (("model", "Linear", "train, 2 BatchNorm1d + 1 Dropout in eval", "cpu", "8 (2 trainable)"),)


def test_memory_change_is_left_out_where_it_is_not_known():
    rows = memory_change_table([a_memory()], [a_memory(allocated_nbytes=299 << 20), a_memory("cuda:0")]).rows
    assert [row[3] for row in rows] == ["-1.00 MB", ""]


def test_calls_name_lines_as_seen_from_the_cell():
    assert call_table([a_count("step", 1200)], 1).rows == (("step", "", "line 3", "1,200"),)
    assert place_name(a_place(7, cell=2, function="train"), 1) == "line 7 of cell 2, in train"
