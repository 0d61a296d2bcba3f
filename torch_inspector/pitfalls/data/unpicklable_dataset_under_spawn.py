"""Workers that start empty and look for a class of the notebook."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import LoaderFact, Place, Run, looped_over, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# What pickling and starting such workers fails with: in the process itself, or because a worker is gone.
_FAILURES = ("AttributeError", "PicklingError", "RuntimeError", "TypeError", "EOFError", "BrokenPipeError")
_SHOWN = 3
# What a loader hands to its workers as a function.
_SETTINGS = ("collate_fn", "worker_init_fn")
_LONGEST = 80


class _Lambda(NamedTuple):
    """A function without a name, and where it stands."""

    node: ast.Lambda
    setting: str
    """What it is given as: `collate_fn`; empty where that is not known."""
    place: Place

    def said(self) -> str:
        """`collate_fn=lambda x: …`."""
        text = ast.unparse(self.node)
        shown = text if len(text) <= _LONGEST else f"{text.partition(':')[0]}: …"
        return f"{self.setting}={shown}" if self.setting else shown

    def named(self) -> str:
        """The same as a function with a name."""
        name = self.setting.removesuffix("_fn") or "function"
        text = f"def {name}({ast.unparse(self.node.args)}): return {ast.unparse(self.node.body)}"
        return text if len(text) <= _LONGEST else "a function with a name"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds loaders that failed, whose workers are spawned and need a class or a function that only a cell has."""
    for loader in run.trace.loaders:
        if loader.unsendable and loader.failed in _FAILURES:
            yield _finding(run, loader)


def _unnamed(run: Run) -> _Lambda | None:
    """The only function without a name that a loader is given in the texts, else the only one that there is."""
    found = list(_lambdas(run))
    given = [one for one in found if one.setting in _SETTINGS]
    return given[0] if len(given) == 1 else found[0] if len(found) == 1 else None


def _lambdas(run: Run) -> Iterator[_Lambda]:
    for cell in {past.cell.source: past.cell for past in (*run.earlier, run)}.values():
        tree = syntax.parse(cell.source)
        nodes = list(syntax.walk(tree)) if tree is not None else []
        settings = {id(one.value): one.arg or "" for one in nodes if isinstance(one, ast.keyword)}
        for node in nodes:
            if isinstance(node, ast.Lambda):
                yield _Lambda(node, settings.get(id(node), ""), Place(cell.number, node.lineno))


def _finding(run: Run, loader: LoaderFact) -> Finding:
    name, needed = looped_over(run, loader.place), loader.unsendable
    unnamed = _unnamed(run) if needed[0].endswith("<lambda>") else None
    first = f"`{unnamed.said()}` ({unnamed.place.said_in(loader.place.cell)})" if unnamed else f"`{needed[0]}`"
    shown = ", ".join((first, *(f"`{one}`" for one in needed[1:_SHOWN])))
    more = f" and {len(needed) - _SHOWN} more" if len(needed) > _SHOWN else ""
    # What has no name of its own, or is made inside a function, no other process finds by its name.
    nameless = "<" in needed[0]
    named = unnamed.named() if unnamed else "a function with a name"
    moved = f"{named}, at the top level of a .py file" if nameless else f"{needed[0]} in a .py file"
    return Finding(
        message=(
            f"{f'`{name}`' if name else 'The loader'} failed ({loader.failed}): workers that start empty "
            f"(spawn, forkserver) cannot find {shown}{more}, which only this notebook has."
        ),
        subject=name or needed[0],
        fix=(
            f"DataLoader(…, num_workers=0)  # in the notebook; or with {moved}, imported here\n"
            'DataLoader(…, multiprocessing_context="fork")  # on Linux, before CUDA is used'
        ),
        line=loader.place.line,
        cell=loader.place.cell,
        evidence=(
            Evidence("only in the notebook", ", ".join(needed)),
            Evidence("workers", loader.worker_count, "count"),
            Evidence("failed with", loader.failed),
        ),
    )
