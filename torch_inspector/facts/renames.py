"""How the keys of a state dict are to be renamed so that a module knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from torch_inspector.facts.forwards import LoadFact

# Unmatched keys that are compared with each other.
_TRIED = 12


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
    found = {one.text: one for one in _tried(load)}
    if not found:
        return None
    best = max(found.values(), key=lambda one: _placed(load, one))
    left = (min if best.whole else max)(len(load.missing), len(load.unexpected))
    return best if 2 * _placed(load, best) >= max(left, 1) else None


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


def _tried(load: LoadFact) -> Iterator[Rename]:
    for given in load.unexpected[:_TRIED]:
        for own in load.missing[:_TRIED]:
            if given.endswith(f".{own}"):
                yield _without(given.removesuffix(own))
            elif own.endswith(f".{given}"):
                yield _with(own.removesuffix(given))
            else:
                yield from (_in_place(*pair) for pair in _differing(given, own))


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


def _alike(one: list[str], two: list[str]) -> int:
    """How many first parts are the same."""
    pairs = zip(one, two, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(two)))
