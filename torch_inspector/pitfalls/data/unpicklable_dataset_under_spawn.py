"""Workers that start empty and look for a class of the notebook."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import LoaderFact, Run, looped_over
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

# What pickling and starting such workers fails with: in the process itself, or because a worker is gone.
_FAILURES = ("AttributeError", "PicklingError", "RuntimeError", "TypeError", "EOFError", "BrokenPipeError")
_SHOWN = 3


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds loaders that failed, whose workers are spawned and need a class or a function that only a cell has."""
    for loader in run.trace.loaders:
        if loader.unsendable and loader.failed in _FAILURES:
            yield _finding(run, loader)


def _finding(run: Run, loader: LoaderFact) -> Finding:
    name, needed = looped_over(run, loader.place), loader.unsendable
    shown = ", ".join(f"`{one}`" for one in needed[:_SHOWN])
    more = f" and {len(needed) - _SHOWN} more" if len(needed) > _SHOWN else ""
    # What has no name of its own, or is made inside a function, no other process finds by its name.
    nameless = "<" in needed[0]
    moved = "a function with a name, at the top level of a .py file" if nameless else f"{needed[0]} in a .py file"
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
