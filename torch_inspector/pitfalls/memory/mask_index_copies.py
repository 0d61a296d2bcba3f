"""Copies made by a mask or a list of numbers that stay alive beside what they were taken from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch_inspector.facts import ExpressionFact, IndexingFact, Run, TensorFact
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
    handed = run.expressions("handed-copies")
    sources = {fact.path: fact for fact in run.after.tensors} if run.trace.indexings or handed else {}
    by_source: dict[str, list[IndexingFact]] = {}
    for indexing in run.trace.indexings:
        if indexing not in run.after.numbered:
            by_source.setdefault(indexing.source, []).append(indexing)
    told = set[str]()
    for name, indexings in by_source.items():
        source = sources.get(name)
        copies = _copies(run, source, {each.target for each in indexings}) if source else {}
        if source and _are_many(run, source, copies):
            told.add(name)
            yield _finding(source, indexings, copies)
    for fact in _one_of_each(handed):
        source, targets = sources.get(fact.names[0]), fact.names[2:]
        copies = _copies(run, source, {*targets}) if source and source.path not in told else {}
        if source and _are_many(run, source, copies):
            yield _by_function(source, fact, copies)


def _one_of_each(facts: tuple[ExpressionFact, ...]) -> list[ExpressionFact]:
    """The first place where each tensor is copied."""
    return list({fact.names[0]: fact for fact in reversed(facts)}.values())[::-1]


def _are_many(run: Run, source: TensorFact, copies: dict[int, TensorFact]) -> bool:
    return _size(copies) >= max(_TIMES * source.nbytes, _LEAST_TIMES * run.min_nbytes, 1)


def _size(copies: dict[int, TensorFact]) -> int:
    return sum(copy.nbytes for copy in copies.values())


def _copies(run: Run, source: TensorFact, targets: set[str]) -> dict[int, TensorFact]:
    """New tensors below the targets which have the rows of the source and memory of their own."""
    old = {(fact.path, fact.key) for fact in run.before.tensors}
    return {
        fact.key: fact
        for fact in run.after.tensors
        if _root(fact.path) in targets
        and fact.key != source.key
        and (fact.path, fact.key) not in old
        and (source.key, fact.key) not in run.after.strangers
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


def _finding(source: TensorFact, indexings: list[IndexingFact], copies: dict[int, TensorFact]) -> Finding:
    roots = {_root(copy.path) for copy in copies.values()}
    kept = [each for each in indexings if each.target in roots] or indexings[:1]
    texts = list(dict.fromkeys(f"`{source.path}[{each.index}]`" for each in kept))
    return Finding(
        message=f"{_listed(texts)}: {_amount(source, copies)}",
        subject=kept[0].target,
        held=kept[0].target if kept[0].target in roots else "",
        fix=_fix(source, kept, in_data_sets=any(".tensors[" in copy.path for copy in copies.values())),
        line=kept[0].line,
        cell=None,
        evidence=_evidence(source, copies),
    )


def _by_function(source: TensorFact, fact: ExpressionFact, copies: dict[int, TensorFact]) -> Finding:
    """The same of what a function copies and gives back."""
    kept = IndexingFact(fact.place.line or 0, source.path, fact.names[1], fact.names[2])
    return Finding(
        message=f"`{fact.text}` in `{fact.place.function}` copies: {_amount(source, copies)}",
        subject=fact.names[2],
        held=fact.names[2] if fact.names[2] in {_root(copy.path) for copy in copies.values()} else "",
        fix=_fix(source, [kept], in_data_sets=False),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=_evidence(source, copies),
    )


def _amount(source: TensorFact, copies: dict[int, TensorFact]) -> str:
    nbytes, names = _size(copies), ", ".join(f"`{name}`" for name in sorted({_root(c.path) for c in copies.values()}))
    times = nbytes / max(source.nbytes, 1)
    return (
        f"{names} keeps {len(copies)} of these copies, {size_text(nbytes)}, {times:.1f} times `{source.path}` itself."
    )


def _evidence(source: TensorFact, copies: dict[int, TensorFact]) -> tuple[Evidence, ...]:
    return (
        Evidence(source.path, source.nbytes, "bytes"),
        Evidence("copies", len(copies), "count"),
        Evidence("bytes of the copies", _size(copies), "bytes"),
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
