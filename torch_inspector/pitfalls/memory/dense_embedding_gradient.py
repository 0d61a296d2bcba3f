"""A dense gradient for a large embedding of which each step uses a few rows."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import Place, Run, TableFact
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Vocabularies of which a batch meets a small part are the rule; only size makes that a matter.
_LARGE_NBYTES = 100 << 20
# A third of that is worth a line: so many times the smallest amount that the user wants to hear of.
_HINT_TIMES = 32
# A sparse gradient keeps a number of 8 bytes with each row; it pays where most rows are left out.
_TIMES = 20
# Settings beside which torch makes no sparse gradients.
_MAX, _SCALED = 'mode="max"', "scale_grad_by_freq=True"
_LOOKUPS = frozenset(["EmbeddingBackward0", "EmbeddingBagBackward0"])


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds embeddings whose lookups, in all backward calls of one step, cover a small part of a large table."""
    tables: dict[int, list[tuple[Place, TableFact]]] = {}
    for backward in run.trace.tabled:
        for table in backward.witness.tables if backward.witness else ():
            tables.setdefault(table.key, []).append((backward.place, table))
    for key, seen in tables.items():
        place, table = seen[0]
        used = max(each.used_count for _, each in seen) * run.trace.calls_per_step()
        large = table.nbytes >= max(_HINT_TIMES * run.min_nbytes, 1)
        if large and used * _TIMES <= table.element_count and _only_lookups(run, key, seen):
            yield _finding(run, place, table, used)


def _only_lookups(run: Run, key: int, seen: list[tuple[Place, TableFact]]) -> bool:
    """True if no backward call reached the table in another way: as the output layer, in a penalty."""
    reached = sum(key in backward.witness.leaf_keys for backward in run.trace.backwards if backward.witness)
    return reached <= len(seen) and all(table.nodes and set(table.nodes) <= _LOOKUPS for _, table in seen)


def _finding(run: Run, place: Place, table: TableFact, used: int) -> Finding:
    name = run.parameter_path(table.key)
    rows = max(table.shape[:1], default=1)
    used_rows = used * rows // max(table.element_count, 1)
    return Finding(
        message=(
            f"`{name or 'an embedding'}` has {rows:,} rows, a step looks up at most {used_rows:,} of them, "
            f"and backward makes a dense gradient of {size_text(table.nbytes)}."
        ),
        subject=name,
        fix=_fix(run, table),
        line=place.line,
        cell=place.cell,
        severity="" if table.nbytes >= _LARGE_NBYTES else "hint",
        evidence=(
            Evidence("table", f"{name or 'embedding'} {table.shape}"),
            Evidence("rows", rows, "count"),
            Evidence("rows looked up per step, at most", used_rows, "count"),
            Evidence("bytes of the gradient", table.nbytes, "bytes"),
        ),
    )


def _fix(run: Run, table: TableFact) -> str:
    """A sparse gradient, with what has to go for it: torch refuses some settings beside it."""
    bag = set(table.nodes) == {"EmbeddingBagBackward0"} and _MAX not in table.settings
    made = f"nn.{'EmbeddingBag' if bag else 'Embedding'}(..., sparse=True)"
    made += " and .amax(1) of the rows of each bag" if _MAX in table.settings else ""
    made += f" without {_SCALED}" if _SCALED in table.settings else ""
    decayed = any(table.key in one.decayed_keys for one in run.after.optimizers)
    decay = " without weight_decay" if decayed else ""
    clip = next((one.function for one in run.trace.clips), "")
    clipped = f"; {clip} refuses it, and is given the other parameters" if clip else ""
    return (
        f"{made} with torch.optim.SparseAdam, SGD or Adagrad{decay} for its weight: "
        f"the gradient then holds the rows that were looked up{clipped}"
    )
