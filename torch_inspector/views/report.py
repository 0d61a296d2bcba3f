"""The whole picture: of one cell for `%%torchcheck`, of this moment for `%torchcheck`."""

from __future__ import annotations

from torch_inspector.facts import GraphFact, Run, Snapshot, TensorFact
from torch_inspector.views.card import Card, Line, Part, Table
from torch_inspector.views.explain import Drawing, finding_parts, tally
from torch_inspector.views.memory import account_parts
from torch_inspector.views.plain import clip
from torch_inspector.views.quantity import seconds, several
from torch_inspector.views.tables import (
    call_table,
    graph_table,
    holder_table,
    loader_table,
    memory_change_table,
    memory_table,
    module_table,
    optimizer_table,
    tensor_table,
)
from torch_inspector.views.timeline import timeline_parts, untold_counts
from torch_inspector.views.words import cell_name, line_name

_LARGEST_COUNT = 10
_MESSAGE_LIMIT = 300


def report_card(drawing: Drawing) -> Card:
    """Everything that was seen of one cell, also when nothing is wrong."""
    run = drawing.run
    found = finding_parts(drawing)
    clean = [] if run.findings else [Line("No findings.")]
    title = f"{cell_name(run)}: report, {tally(run.findings, drawing.known)}"
    return Card(
        title,
        "calm",
        (*_outcome(run), *clean, *found, *timeline_parts(run), *_filled(_run_tables(run)), *_account(run)),
    )


def state_card(snapshot: Snapshot) -> Card:
    """What is alive at this moment."""
    tables = _filled(_state_tables(snapshot))
    nothing = [] if tables else [Line("No tensors, modules or optimizers were found.")]
    return Card("torch_inspector: what is alive", "calm", (*_limits(snapshot), *nothing, *tables))


def since_card(snapshot: Snapshot, number: int) -> Card:
    """Named tensors that were made after a cell and are alive."""
    made = [fact for fact in snapshot.tensors if fact.first_seen_cell is not None and fact.first_seen_cell > number]
    table = tensor_table(made, f"Tensors made after cell {number}", complete=snapshot.complete)
    nothing = [] if table.rows else [Line("No variable leads to a tensor that was made since.")]
    title = f"torch_inspector: new since cell {number}"
    return Card(title, "calm", (*_limits(snapshot), *nothing, *_filled((table,))))


def _outcome(run: Run) -> list[Part]:
    took = f"Took {seconds(run.duration_s)}; the inspector took {seconds(run.inspection_s)} more"
    made = run.trace.graph_nodes_made
    nodes = f"; autograd made {several(made, 'node')}" if made else ""
    return [Line(f"{took}{nodes}."), *_error(run), *_limits(run.after)]


def _error(run: Run) -> list[Part]:
    error = run.error
    if error is None:
        return []
    where = line_name(error.place.line, error.place.cell, run.cell.number)
    at = f" at {where}" if where else ""
    if error.interrupted:
        return [Line(f"Interrupted{at}.")]
    return [Line(f"Ended{at} with {clip(error.kind, _MESSAGE_LIMIT)}: {clip(error.message, _MESSAGE_LIMIT)}")]


def _limits(snapshot: Snapshot) -> list[Part]:
    if snapshot.complete:
        return []
    return [Line("The look ended at its time limit: there is at least what stands below, maybe more.")]


def _run_tables(run: Run) -> tuple[Table, ...]:
    after, here, complete = run.after, run.cell.number, run.after.complete
    return (
        memory_change_table(run.before.memory, after.memory),
        tensor_table(_new_tensors(run), "New tensors", complete=complete),
        graph_table(_new_graphs(run), "New graphs", complete=complete),
        module_table(after.modules, complete=complete),
        optimizer_table(after.optimizers, complete=complete),
        call_table(untold_counts(run), here),
        loader_table(run.trace.loaders, here),
    )


def _account(run: Run) -> list[Part]:
    """Who holds the memory now, where it was counted."""
    if run.account is None or not run.account.rows:
        return []
    cells = {fact.path: fact.first_seen_cell for fact in run.after.tensors if fact.first_seen_cell is not None}
    return account_parts(run.account, cells, _LARGEST_COUNT)


def _state_tables(snapshot: Snapshot) -> tuple[Table, ...]:
    complete = snapshot.complete
    return (
        memory_table(snapshot.memory),
        module_table(snapshot.modules, complete=complete),
        optimizer_table(snapshot.optimizers, complete=complete),
        graph_table(snapshot.graphs, "Graphs alive", complete=complete),
        holder_table(snapshot.holders, complete=complete),
        tensor_table(snapshot.tensors, "Largest tensors", row_count=_LARGEST_COUNT, complete=complete),
    )


def _new_tensors(run: Run) -> list[TensorFact]:
    old = {(fact.path, fact.key) for fact in run.before.tensors}
    return [fact for fact in run.after.tensors if (fact.path, fact.key) not in old]


def _new_graphs(run: Run) -> list[GraphFact]:
    old = {(fact.path, fact.key) for fact in run.before.graphs}
    return [fact for fact in run.after.graphs if (fact.path, fact.key) not in old]


def _filled(tables: tuple[Table, ...]) -> list[Table]:
    return [table for table in tables if table.rows]
