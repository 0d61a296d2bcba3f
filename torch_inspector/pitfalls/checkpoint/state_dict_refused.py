"""A state dictionary whose keys or shapes are not those of the module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import Run, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_REFUSED = re.compile(r"^Error\(s\) in loading state_dict for (\w+):")
_LISTS = re.compile(r"(Missing|Unexpected) key\(s\) in state_dict: ([^\n]*)")
_KEY = re.compile(r'"([^"]+)"')
_SIZES = re.compile(
    r"size mismatch for (\S+): copying a param with shape torch\.Size\(\[([\d, ]*)\]\) from checkpoint, "
    r"the shape in current model is torch\.Size\(\[([\d, ]*)\]\)"
)
# Names under which a checkpoint holds the weights beside other things.
_ENTRIES = ("model_state_dict", "state_dict", "model_state", "model", "net", "network", "weights")
# What wrappers put before each key.
_WRAPPERS = ("module.", "_orig_mod.", "model.", "net.")
# More layers of another size are another model.
_FEW_SIZES = 4


class _Refusal(NamedTuple):
    """What the message lists."""

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    sizes: tuple[tuple[str, str, str], ...]
    """Key, shape in the dictionary, shape in the module."""


class _Load(NamedTuple):
    """The two sides of the call, as written."""

    module: str
    state: str


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds what differs, when `load_state_dict` has refused."""
    error = run.error
    told = _REFUSED.match(error.message) if error is not None and error.kind == "RuntimeError" else None
    if error is None or told is None:
        return
    refusal, load = _refusal(error.message), _load(error.expression)
    name = load.module if load is not None else told[1]
    message, fix = _told(refusal, name, load)
    if message:
        yield Finding(
            message=message,
            subject=name,
            fix=fix,
            line=error.place.line,
            cell=error.place.cell,
            evidence=tuple(_evidence(refusal)),
        )


def _refusal(message: str) -> _Refusal:
    lists = {kind: tuple(_KEY.findall(keys)) for kind, keys in _LISTS.findall(message)}
    sizes = tuple((key, f"({given})", f"({own})") for key, given, own in _SIZES.findall(message))
    return _Refusal(lists.get("Missing", ()), lists.get("Unexpected", ()), sizes)


def _load(expression: str) -> _Load | None:
    node = syntax.expression(expression)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return None
    return _Load(ast.unparse(node.func.value), ast.unparse(node.args[0]))


def _told(refusal: _Refusal, name: str, load: _Load | None) -> tuple[str, str]:
    """Message and fix: what is inside an entry, what has a prefix, what has another size, or only that keys differ."""
    for tell in (_of_entry, _of_prefix, _of_sizes):
        told = tell(refusal, name, load)
        if told is not None:
            return told
    return _of_keys(refusal, name)


_Told = tuple[str, str] | None


def _of_entry(refusal: _Refusal, name: str, load: _Load | None) -> _Told:
    entry = next((one for one in _ENTRIES if one in refusal.unexpected), "")
    if not entry or not refusal.missing:
        return None
    others = ", ".join(f"`{one}`" for one in refusal.unexpected if one != entry)
    beside = f" beside {others}" if others else ""
    message = f"`{name}` was given a whole checkpoint: the weights are its entry `{entry}`{beside}."
    return message, f'{load.module}.load_state_dict({load.state}["{entry}"])' if load is not None else ""


def _of_prefix(refusal: _Refusal, name: str, load: _Load | None) -> _Told:
    unexpected, missing = set(refusal.unexpected), set(refusal.missing)
    for prefix in _prefixes(refusal):
        if missing and {f"{prefix}{one}" for one in missing} <= unexpected:
            message = f"the keys for `{name}` have `{prefix}` before them: a wrapper or a larger model was saved."
            rest = f' if k.startswith("{prefix}")' if len(unexpected) > len(missing) else ""
            return message, _mapped(load, f'k.removeprefix("{prefix}")', rest)
        if unexpected and {f"{prefix}{one}" for one in unexpected} <= missing:
            message = f"`{name}` has `{prefix}` before the keys that were saved: they are of that part alone."
            return message, _of_part(load, prefix)
    return None


def _prefixes(refusal: _Refusal) -> Iterator[str]:
    yield from _WRAPPERS
    for longer, shorter in ((refusal.unexpected, refusal.missing), (refusal.missing, refusal.unexpected)):
        for one in shorter[:1]:
            yield from (key.removesuffix(one) for key in longer if key.endswith(f".{one}"))


def _mapped(load: _Load | None, key: str, rest: str) -> str:
    return f"{load.module}.load_state_dict({{{key}: v for k, v in {load.state}.items(){rest}}})" if load else ""


def _of_part(load: _Load | None, prefix: str) -> str:
    """The call on the part of the module that the keys are of."""
    path = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in prefix.rstrip(".").split("."))
    return f"{load.module}{path}.load_state_dict({load.state})" if load is not None else ""


def _of_sizes(refusal: _Refusal, name: str, load: _Load | None) -> _Told:
    if not refusal.sizes:
        return None
    key, given, own = refusal.sizes[0]
    more = f", and {len(refusal.sizes) - 1} more" if len(refusal.sizes) > 1 else ""
    message = f"`{key}` has the shape {given} in what was saved and {own} in `{name}`{more}."
    only = not refusal.missing and not refusal.unexpected
    if load is None or not only or len(refusal.sizes) > _FEW_SIZES:
        return message, "build the model with the sizes of the one that was saved"
    keys = ", ".join(f'"{one}"' for one, _, _ in refusal.sizes)
    kept = f"{{k: v for k, v in {load.state}.items() if k not in [{keys}]}}"
    are = "are" if " and " in _layers(refusal) else "is"
    return message, f"{load.module}.load_state_dict({kept}, strict=False)  # if {_layers(refusal)} {are} to start anew"


def _layers(refusal: _Refusal) -> str:
    owners = dict.fromkeys(key.rpartition(".")[0] or key for key, _, _ in refusal.sizes)
    return " and ".join(owners)


def _of_keys(refusal: _Refusal, name: str) -> tuple[str, str]:
    if not refusal.missing and not refusal.unexpected:
        return "", ""
    lacks = f"lacks `{refusal.missing[0]}`" if refusal.missing else ""
    has = f"has `{refusal.unexpected[0]}`, which the module has not" if refusal.unexpected else ""
    what = " and ".join(part for part in (lacks, has) if part)
    return f"the saved state for `{name}` {what}: it is of a model that is built in another way.", (
        "build the model like the one that was saved"
    )


def _evidence(refusal: _Refusal) -> Iterator[Evidence]:
    for label, keys in (("missing", refusal.missing), ("unexpected", refusal.unexpected)):
        if keys:
            yield Evidence(label, ", ".join(keys[:3]) + (", …" if len(keys) > len(keys[:3]) else ""))
    for key, given, own in refusal.sizes[:3]:
        yield Evidence(key, f"saved {given}, here {own}")
