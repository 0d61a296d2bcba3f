"""Copies made by a mask or a list of numbers that stay alive beside what they were taken from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import IndexingFact, Run, TensorFact
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# A split into two or three parts is the size of the whole; more than twice that is the same data several times.
_TIMES = 2
# Below this nobody runs out of memory by it: in parts of the smallest amount that the user wants to hear of.
_LEAST_TIMES = 8
_SHOWN = 2
# Nodes that indexing makes, or none.
_MADE_BY = ("", "IndexBackward0")
_ROOT = re.compile(r"[^.\[]*")


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds tensors of which copies, made by indexing in this cell, take several times their own memory."""
    sources = {fact.path: fact for fact in run.after.tensors} if run.trace.indexings else {}
    by_source: dict[str, list[IndexingFact]] = {}
    for indexing in run.trace.indexings:
        if indexing not in run.after.numbered:
            by_source.setdefault(indexing.source, []).append(indexing)
    for name, indexings in by_source.items():
        source = sources.get(name)
        copies = _copies(run, source, {each.target for each in indexings}) if source else {}
        nbytes = sum(copy.nbytes for copy in copies.values())
        if source and nbytes >= max(_TIMES * source.nbytes, _LEAST_TIMES * run.min_nbytes, 1):
            yield _finding(source, indexings, copies, nbytes)


def _copies(run: Run, source: TensorFact, targets: set[str]) -> dict[int, TensorFact]:
    """New tensors below the targets which have the rows of the source and memory of their own."""
    old = {(fact.path, fact.key) for fact in run.before.tensors}
    return {
        fact.key: fact
        for fact in run.after.tensors
        if _root(fact.path) in targets
        and fact.key != source.key
        and (fact.path, fact.key) not in old
        and fact.shape[1:] == source.shape[1:]
        and len(fact.shape) == len(source.shape) > 0
        and fact.dtype == source.dtype
        and fact.device == source.device
        and 0 < fact.nbytes == fact.storage_nbytes
        and fact.made_by in _MADE_BY
        and (fact.made_by or not source.made_by)
    }


def _root(path: str) -> str:
    """`folds` for `folds[2][0]`."""
    found = _ROOT.match(path)
    return found.group() if found else ""


def _finding(source: TensorFact, indexings: list[IndexingFact], copies: dict[int, TensorFact], nbytes: int) -> Finding:
    roots = {_root(copy.path) for copy in copies.values()}
    kept = [each for each in indexings if each.target in roots] or indexings[:1]
    first, texts = kept[0], list(dict.fromkeys(f"`{source.path}[{each.index}]`" for each in kept))
    names = ", ".join(f"`{name}`" for name in sorted(roots))
    times = nbytes / max(source.nbytes, 1)
    return Finding(
        message=(
            f"{_listed(texts)}: {names} keeps {len(copies)} of these copies, "
            f"{size_text(nbytes)}, {times:.1f} times `{source.path}` itself."
        ),
        subject=first.target,
        fix=_fix(source, kept, in_data_sets=any(".tensors[" in copy.path for copy in copies.values())),
        line=first.line,
        cell=None,
        evidence=(
            Evidence(source.path, source.nbytes, "bytes"),
            Evidence("copies", len(copies), "count"),
            Evidence("bytes of the copies", nbytes, "bytes"),
        ),
    )


def _listed(texts: list[str]) -> str:
    shown = ", ".join(texts[:2]) if len(texts) > _SHOWN else " and ".join(texts)
    return f"{shown} {'and others ' if len(texts) > _SHOWN else ''}{'copies' if len(texts) == 1 else 'copy'}"


def _fix(source: TensorFact, kept: list[IndexingFact], *, in_data_sets: bool) -> str:
    first, indices = kept[0], ", ".join(dict.fromkeys(each.index for each in kept))
    if in_data_sets and "," not in first.index and "," not in source.path:
        # `Subset` takes numbers, and the index may be a mask.
        rows = f"torch.arange(len({source.path}))[{first.index}].tolist()"
        return f"torch.utils.data.Subset(whole, {rows})  # whole = TensorDataset({source.path}, …), once; no copy"
    return (
        f"keep the indices instead ({indices}) and index {source.path} where a part is used; "
        "a slice such as [a:b] shares the memory"
    )
