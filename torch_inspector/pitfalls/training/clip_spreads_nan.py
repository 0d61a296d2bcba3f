"""Clipping by norm made all gradients NaN because one was."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import ClipFact, Run
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_NAMES_SHOWN = 3


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds the first clip whose norm was not finite because of some of the gradients."""
    clip = next((clip for clip in run.trace.clips if clip.spreads()), None)
    if clip is not None and run.nonfinite_cause() == "clip":
        yield _finding(run, clip)


def _finding(run: Run, clip: ClipFact) -> Finding:
    paths = sorted(path for path in map(run.parameter_path, clip.spoiled_keys) if path)
    shown = ", ".join(f"`{path}`" for path in paths[:_NAMES_SHOWN]) or f"{len(clip.spoiled_keys)} parameters"
    owner = run.owner_path(clip.parameter_keys)
    others = len(clip.parameter_keys) - len(clip.spoiled_keys)
    return Finding(
        message=(
            f"`{clip.function}` divided all gradients by a norm of {clip.norm}: before it only {shown} had a gradient "
            f"that is not finite, and it spoiled {others} more."
        ),
        subject=owner or "gradients",
        fix=(
            f"norm = {clip.function}(…)\nif norm.isfinite():\n    optimizer.step()  # and find the cause: "
            "error_if_nonfinite=True"
        ),
        line=clip.place.line,
        cell=clip.place.cell,
        evidence=(
            Evidence("norm", str(clip.norm)),
            Evidence("gradients not finite before", len(clip.spoiled_keys), "count"),
            Evidence("gradients in the optimizer", len(clip.parameter_keys), "count"),
        ),
    )
