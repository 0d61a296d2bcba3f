"""How the keys of a state dict are to be renamed so that a module knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

from torch_inspector.facts.forwards import LoadFact

# Unmatched keys that are compared with each other.
_TRIED = 12
# Further ways that are tried on top of the first; more than that is another model.
_STEPS = 2


class Rename(NamedTuple):
    """One way to rename all keys."""

    text: str
    """Of a key `k`: `k.removeprefix("module.")`."""
    said: str
    becomes: Callable[[str], str]
    whole: bool = True
    """True if all of the key stays beside what is put before it or taken away there."""


def rename_for(load: LoadFact) -> Rename | None:
    """The one that finds the most places, each of the right shape; None unless it does for half of what is left."""
    first = _best(load, _tried(load.unexpected, load.missing))
    best = _furthered(load, first, _STEPS) if first is not None else None
    if best is None:
        return None
    left = (min if best.whole else max)(len(load.missing), len(load.unexpected))
    return best if 2 * _placed(load, best) >= max(left, 1) else None


def _furthered(load: LoadFact, rename: Rename, steps: int) -> Rename:
    """The same, and then what finds most of the places that are left."""
    further = _best(load, (_then(rename, one) for one in _tried(*_left(load, rename)))) if steps else None
    if further is None or _placed(load, further) <= _placed(load, rename):
        return rename
    return _furthered(load, further, steps - 1)


def _best(load: LoadFact, renames: Iterable[Rename]) -> Rename | None:
    found = {one.text: one for one in renames}
    return max(found.values(), key=lambda one: _placed(load, one), default=None)


def _left(load: LoadFact, rename: Rename) -> tuple[list[str], list[str]]:
    """What is unexpected and what is missing after keys were renamed."""
    own = dict(load.own_keys)
    given = [rename.becomes(key) for key in load.unexpected]
    return [key for key in given if key not in own], [key for key in load.missing if key not in given]


def _then(first: Rename, second: Rename) -> Rename:
    """Both, one after the other."""
    value = first.text if first.text[:2] in ("k.", 'f"') else f"({first.text})"
    return Rename(
        f"{value}{second.text[1:]}" if second.text.startswith("k.") else f'"{second.becomes("")}" + {value}',
        f"{first.said}, and {second.said}",
        lambda key: second.becomes(first.becomes(key)),
        whole=first.whole and second.whole,
    )


def is_all(load: LoadFact, rename: Rename) -> bool:
    """True if the keys are then exactly those of the module."""
    return {rename.becomes(key) for key, _ in load.given_keys} == {key for key, _ in load.own_keys}


def _placed(load: LoadFact, rename: Rename) -> int:
    own, unmatched = dict(load.own_keys), set(load.unexpected)
    known = dict(load.given_keys).keys() - unmatched
    if any(rename.becomes(key) not in own for key in known):
        return -1  # it would lose keys that are right
    named = ((rename.becomes(key), shape) for key, shape in load.given_keys if key in unmatched)
    return sum(own.get(key) == shape for key, shape in named)


def _tried(unexpected: Sequence[str], missing: Sequence[str]) -> Iterator[Rename]:
    for given in unexpected[:_TRIED]:
        for own in missing[:_TRIED]:
            if given.endswith(f".{own}"):
                yield _without(given.removesuffix(own))
            elif own.endswith(f".{given}"):
                yield _with(own.removesuffix(given))
            else:
                yield from (_in_place(*pair) for pair in _differing(given, own))
                apart = [_in_place(*pair) for pair in _differing_apart(given, own)]
                yield from (reduce(_then, apart),) if len(apart) > 1 else ()


def _without(prefix: str) -> Rename:
    return Rename(
        f'k.removeprefix("{prefix}")',
        f"`{prefix}` stands before the keys given",
        lambda key: key.removeprefix(prefix),
    )


def _with(prefix: str) -> Rename:
    return Rename(f'f"{prefix}{{k}}"', f"the keys given lack `{prefix}` in front", lambda key: f"{prefix}{key}")


def _in_place(given: str, own: str) -> Rename:
    said = f"`{given}` is given where `{own}` is wanted"
    return Rename(f'k.replace("{given}", "{own}")', said, lambda key: key.replace(given, own), whole=False)


def _differing(given: str, own: str) -> Iterator[tuple[str, str]]:
    """The part in which two keys differ: whole parts between dots, then letters: `enc1.bias`, `block1.bias`."""
    one, two = given.split("."), own.split(".")
    first, last = _alike(one, two), _alike(one[::-1], two[::-1])
    if first + last < min(len(one), len(two)):
        a, b = (".".join(parts[first : len(parts) - last]) for parts in (one, two))
        yield (f"{a}.", f"{b}.") if last else (f".{a}", f".{b}")
        end = _alike([*a[::-1]], [*b[::-1]])
        if end:
            yield a[: len(a) - end], b[: len(b) - end]


def _differing_apart(given: str, own: str) -> list[tuple[str, str]]:
    """The parts at which two keys of as many parts differ: `layers.0.mlp.bias`, `blocks.0.fc.bias`."""
    one, two = given.split("."), own.split(".")
    if len(one) != len(two):
        return []
    last, different = len(one) - 1, [(i, a, b) for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b]
    return [(_dotted(a, i, last), _dotted(b, i, last)) for i, a, b in different if not (a.isdigit() and b.isdigit())]


def _dotted(part: str, index: int, last: int) -> str:
    return f"{'.' if index else ''}{part}{'.' if index < last else ''}"


def _alike(one: list[str], two: list[str]) -> int:
    """How many first parts are the same."""
    pairs = zip(one, two, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(two)))
