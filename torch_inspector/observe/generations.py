"""Earlier instances of a model that a variable named before it was made anew, where something still holds them.

Compared are the modules that plain variables name before and after a cell, by number. Only where one was replaced by
another of its class, and is alive all the same, is there a search for who leads to it. What a loop makes between two
looks has no number: where the text has such a loop, the garbage collector is asked for objects of that class.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Mapping
from typing import Any
from weakref import ref

from torch_inspector.facts import ElderFact
from torch_inspector.observe import kinds, private
from torch_inspector.observe.circles import only_circles
from torch_inspector.observe.history import module_tensors, storages_of
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.namespace import Names, hidden
from torch_inspector.observe.reach import Reach
from torch_inspector.observe.registries import kept_by

# Processor and wall time for the search, which is rare.
_PROOF_S = 0.020
# Less is not worth it.
_SMALL_NBYTES = 64 << 10
_LOOP = re.compile(r"^[ \t]*(async +)?(for|while)\b", re.MULTILINE)
_ATTRIBUTE = re.compile(r"\w+(\.\w+)+")
_INDENTED = r"^[ \t]+{}[ \t]*=(?!=)"


class Generations:
    """Remembers by number which module each variable named; holds none of them."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._named: dict[str, tuple[int, str]] = {}

    def facts(
        self, user: Names, variables: Mapping[str, Any], history: Mapping[Any, Any], code: str = ""
    ) -> tuple[ElderFact, ...]:
        """One fact per variable whose former module is alive although no variable names it.

        Args:
            user: What the walk of the variables found.
            variables: The user's namespace.
            history: IPython's `Out`.
            code: The Python of the cell.
        """
        before, self._named = self._named, self._now(user)
        elders = {path: self._elders(path, before.get(path), code, user) for path in self._named}
        elders = {path: found for path, found in elders.items() if found}
        if not elders or not user.complete:
            return ()
        held = storages_of(user).keys()
        kept = (self._kept(path, things, user) for path, things in elders.items())
        found = (_fact(path, things, held, variables, history) for path, things in elders.items())
        facts = [fact for fact in (*kept, *found) if fact is not None]
        facts = [fact._replace(successor=self._named[fact.path][0]) for fact in facts]
        alone = {path: list(map(ref, things.values())) for path, things in elders.items()}
        elders.clear()  # for the count of references
        return tuple(_told(fact, alone[fact.path]) for fact in facts)

    def _kept(self, path: str, elders: dict[int, Any], user: Names) -> ElderFact | None:
        """The one elder of a variable, where an attribute of a plain object, `ev.net`, is the only way to it."""
        if len(elders) != 1 or min(elders) < 0 or not path.isidentifier():
            return None
        ((key, elder),) = elders.items()
        paths = [known for known, module in user.modules if module is elder]
        now = next(module for known, module in user.modules if known == path)
        holder = paths[0].partition(".")[0] if len(paths) == 1 and _ATTRIBUTE.fullmatch(paths[0]) else ""
        if not holder or any(known == holder for known, _ in user.modules):
            return None
        shared = {private.storage_of(one) for one in module_tensors(now)}
        own = dict(s for one in module_tensors(elder) if (s := private.storage_of(one)) is not None and s not in shared)
        nbytes = sum(own.values())
        return ElderFact(path, kinds.class_name(elder), nbytes, holder, key, attribute=paths[0]) if nbytes else None

    def _now(self, user: Names) -> dict[str, tuple[int, str]]:
        """Number of the module and name of its class, for each plain variable: a class may be made anew as well."""
        known = {path for path, _ in user.modules}
        owned = (path for path in known if _ATTRIBUTE.fullmatch(path) and path.count(".") == 1)
        plain_objects = {path for path in owned if path.partition(".")[0] not in known}
        plain = ((path, module) for path, module in user.modules if path.isidentifier() or path in plain_objects)
        return {path: (self._keys.of(module), _name_of_class(module)) for path, module in plain}

    def _elders(self, path: str, before: tuple[int, str] | None, code: str, user: Names) -> dict[int, Any]:
        """Living modules of the class of a variable's module that it named before or may have named, by number."""
        key, kind = self._named[path]
        if before is not None and before[0] == key:
            return {}
        if path.isidentifier() and _makes_in_loop(path, code):
            known = {id(module) for _, module in user.modules}
            now = next(module for name, module in user.modules if name == path)
            # Of other classes than the notebook's own, instances that were never the user's may be about.
            if kinds.module_of(type(now)) != "__main__":
                return {}
            # A number of nothing: those without one were made in this cell.
            return {-n: one for n, one in enumerate(_instances(type(now)), 1) if id(one) not in known}
        elder = self._keys.live(before[0]) if before is not None and before[1] == kind else None
        return {before[0]: elder} if before is not None and elder is not None else {}


def _told(fact: ElderFact, elders: list[ref[Any]]) -> ElderFact:
    """The fact, with what is known about those that no variable leads to."""
    if fact.holder:
        return fact
    things = [one() for one in elders]
    return fact._replace(circular=all(one is not None for one in things) and only_circles(things))


def _name_of_class(module: Any) -> str:
    return f"{kinds.module_of(type(module))}.{kinds.class_name(module)}"


def _makes_in_loop(path: str, code: str) -> bool:
    return _LOOP.search(code) is not None and re.search(_INDENTED.format(path), code, re.MULTILINE) is not None


def _instances(kind: type[Any]) -> list[Any]:
    return [thing for thing in gc.get_objects() if type(thing) is kind]


def _fact(
    path: str, elders: dict[int, Any], held: Any, variables: Mapping[str, Any], history: Mapping[Any, Any]
) -> ElderFact | None:
    """What the elders of one variable hold alone; of those that a loop made only what no variable leads to."""
    own, count = {}, 0
    for elder in elders.values():
        storages = dict(found for one in module_tensors(elder) if (found := private.storage_of(one)) is not None)
        alone = {storage: nbytes for storage, nbytes in storages.items() if storage not in held}
        count += bool(alone)
        own.update(alone)
    nbytes, in_loop = sum(own.values()), min(elders) < 0
    holder = _holder(set(own), variables, history) if nbytes >= _SMALL_NBYTES else None
    if (
        holder is None
        or holder == path.partition(".")[0]
        or (holder and in_loop)
        or not (holder or path.isidentifier())
    ):
        return None
    kept = kept_by(set(own), holder, variables.get(holder), variables.get(path.partition(".")[0]))
    kind = kinds.class_name(next(iter(elders.values())))
    return ElderFact(path, kind, nbytes, holder, max(elders), count, in_loop, registry=kept.path, methods=kept.methods)


def _holder(wanted: set[int], variables: Mapping[str, Any], history: Mapping[Any, Any]) -> str | None:
    """The variable that leads to some storages, empty if none does; None if the notebook does, or it is not known."""
    reach, count = Reach(wanted, (history, variables), _PROOF_S), len(wanted)
    reach.search(notebooks_own(variables, history))
    if not reach.complete or len(reach.wanted) < count:
        return None
    for name, value in list(variables.items()):
        if not hidden(name):
            reach.search([value])
            if len(reach.wanted) < count:
                return str(name)
    return "" if reach.complete else None


def notebooks_own(variables: Mapping[str, Any], history: Mapping[Any, Any]) -> list[Any]:
    """Results and the last exception, which other pitfalls tell of."""
    error = getattr(sys, "last_value", None)
    own = [value for name, value in list(variables.items()) if hidden(name)]
    return [*own, *list(history.values()), *([error] if error is not None else [])]
