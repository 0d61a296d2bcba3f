"""A list of layers holds one layer several times, or those of another list."""

from __future__ import annotations

from collections.abc import Iterator

from torch_inspector.facts import RepeatedFact, Run
from torch_inspector.facts.made_anew import copies, imports_copy, made_anew
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds lists with one layer several times, where the text shows that it was multiplied."""
    told = set()
    for fact in run.after.repeated:
        if fact.place not in told and fact.count > 1:
            told.add(fact.place)
            yield _of_mirror(run, fact) if fact.mirrored else _finding(run, fact)


def _finding(run: Run, fact: RepeatedFact) -> Finding:
    a_kind = "parameter" if fact.layer_kind.endswith("Parameter") else f"{fact.layer_kind}"
    return Finding(
        message=(
            f"{_entries(fact)} are one and the same {a_kind}: `{fact.text}` makes no copies, "
            f"so there are {fact.parameter_count:,} parameters to train instead of "
            f"{fact.parameter_count * fact.count:,}."
        ),
        subject=fact.path,
        fix=_fix(run, fact),
        line=fact.place.line,
        cell=fact.place.cell,
        # A layer that has a name may be meant to be shared: recurrent networks and some decoders are written so.
        severity="error" if fact.in_call else "hint",
        evidence=(
            Evidence("entries", fact.count, "count"),
            Evidence("different layers among them", 1, "count"),
            Evidence("numbers in its parameters", fact.parameter_count, "count"),
        ),
    )


def _of_mirror(run: Run, fact: RepeatedFact) -> Finding:
    """Of a decoder that is the encoder turned round: a reversed list holds the same layers."""
    imports = "" if imports_copy(run) else "import copy\n"
    return Finding(
        message=(
            f"`{fact.path}` holds the very layers of `{fact.mirrored}`, in reverse: `{fact.text}` makes no copies, so "
            f"there are {fact.parameter_count:,} parameters to train instead of {2 * fact.parameter_count:,}."
        ),
        subject=fact.path,
        fix=(
            f"{imports}[copy.deepcopy(one) for one in {fact.text}]  # in place of {fact.text}, unless one set of "
            "layers for both is meant"
        ),
        line=fact.place.line,
        cell=fact.place.cell,
        severity="hint",
        evidence=(
            Evidence("layers in both", fact.count, "count"),
            Evidence("numbers in their parameters", fact.parameter_count, "count"),
        ),
    )


def _entries(fact: RepeatedFact) -> str:
    every = f"{fact.count} of the {fact.entry_count}" if fact.entry_count else f"the {fact.count}"
    if fact.container == "names":
        return f"{every} layers that are counted up from `{fact.path}`"
    return f"{every} {'layers' if fact.entry_count else 'entries'} of `{fact.path}`"


def _fix(run: Run, fact: RepeatedFact) -> str:
    made = f"nn.{fact.layer_kind}(…)" if fact.in_call else "copy.deepcopy(…)"
    written = made_anew(run, fact) or f"[{made} for _ in range({fact.count})]"
    remark = "a new one in each turn" if fact.in_call else "unless one layer for all of them is meant"
    first = "import copy\n" if copies(written) and not imports_copy(run) else ""
    return f"{first}{written}  # {remark}"
