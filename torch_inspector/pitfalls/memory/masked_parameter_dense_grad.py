"""One large parameter of which a step picks a small part: its gradient has the full size."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, Run, TableFact
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# A smaller parameter is no burden, however little of it is used: so many times what the user wants to hear of.
_HINT_TIMES = 16
_LARGE_NBYTES = 100 << 20
# At least nine tenths of the gradient are zeros.
_TIMES = 10
_LOOKUPS = frozenset(["EmbeddingBackward0", "EmbeddingBagBackward0"])


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds leaves that were only indexed, and of which the backward calls of one step reached a small part."""
    done: set[int] = set()
    for backward in run.trace.tabled:
        for table in backward.witness.tables if backward.witness else ():
            if table.key not in done and table.nbytes >= max(_HINT_TIMES * run.min_nbytes, 1):
                done.add(table.key)
                used = _most_used(run, table.key) * run.trace.calls_per_step()
                if 0 < used * _TIMES <= table.element_count:
                    yield _finding(run, backward, table, used)


def _most_used(run: Run, key: int) -> int:
    """Elements that one backward call picked at most; 0 if a call used the leaf in another way."""
    reached = [backward.witness for backward in run.trace.backwards if backward.witness]
    calls = [witness for witness in reached if key in witness.leaf_keys]
    tables = [table for witness in reached for table in witness.tables if table.key == key]
    picked = len(tables) >= len(calls) and all(set(table.nodes) - _LOOKUPS for table in tables)
    return max((table.used_count for table in tables), default=0) if picked else 0


def _finding(run: Run, backward: BackwardFact, table: TableFact, used: int) -> Finding:
    name = run.parameter_path(table.key)
    share = used / max(table.element_count, 1)
    return Finding(
        message=(
            f"`{name or 'a parameter'}` of shape {table.shape} is only indexed, a step picks at most {share:.1%}, "
            f"and backward fills a gradient of {size_text(table.nbytes)}, zeros for the rest."
        ),
        subject=name,
        fix=(
            "nn.ParameterList with one parameter for each part, and only the chosen ones used: "
            "the others then have no gradient (for rows of numbers: nn.Embedding(..., sparse=True))"
        ),
        line=backward.place.line,
        cell=backward.place.cell,
        severity="" if table.nbytes >= _LARGE_NBYTES else "hint",
        evidence=(
            Evidence("parameter", f"{name or 'leaf'} {table.shape}"),
            Evidence("elements", table.element_count, "count"),
            Evidence("elements picked per step, at most", used, "count"),
            Evidence("bytes of the gradient", table.nbytes, "bytes"),
            Evidence("picked by", ", ".join(table.nodes)),
        ),
    )
