"""Paths that the user can type, found without running any of his code."""

import enum
import gc
import threading
from collections import OrderedDict, defaultdict, deque, namedtuple
from time import thread_time
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from torch_inspector.observe.namespace import ELEMENTS, attributes_of, hidden, key_text, walk_names

LATER = float("inf")
Pair = namedtuple("Pair", "left right")  # noqa: PYI024


class Plain:
    """An object of the user's own."""

    def __init__(self, **fields):
        vars(self).update(fields)


Plain.__module__ = "__main__"


def t():
    return torch.zeros(2)


def walk(deadline=LATER, **names):
    return walk_names(names.items(), deadline)


def paths(**names):
    return [path for path, _ in walk(**names).tensors]


def test_every_path_is_the_object():
    shared = t()
    names = {
        "x": t(),
        "items": [t(), (t(), [t()])],
        "d": {"a": t(), 3: t(), None: t(), True: t(), 1.5: t(), "it's": t(), -1: t(), 'q"\\\n': t()},
        "od": OrderedDict(a=t()),
        "dd": defaultdict(list, k=[t()]),
        "q": deque([t(), t()]),
        "pair": Pair(t(), shared),
        "obj": Plain(w=t(), inner=Plain(v=[t()])),
        "again": shared,
        "net": nn.Sequential(nn.Linear(2, 2)),
        "opt": torch.optim.SGD([nn.Parameter(t())], lr=0.1),
    }
    found = walk_names(names.items(), LATER)
    everything = [*found.tensors, *found.modules, *found.optimizers]
    assert len(found.tensors) == 20
    for path, value in everything:
        assert eval(path, names) is value, path  # noqa: S307


def test_odd_names_of_variables_can_be_typed():
    names = {"é": t(), "with space": t(), "1st": t()}
    for path, value in walk_names(names.items(), LATER).tensors:
        assert eval(path, names) is value, path  # noqa: S307


@pytest.mark.parametrize(
    "names",
    [
        pytest.param({"class": t()}, id="keyword as a variable"),
        pytest.param({"obj": Plain(**{"my-field": t()})}, id="attribute that is no identifier"),
        pytest.param({"obj": Plain(**{"if": t()})}, id="keyword as an attribute"),
        pytest.param({"d": {float("inf"): t()}}, id="infinite key"),
    ],
)
def test_odder_names_can_be_typed_too(names):
    ((path, value),) = walk_names(names.items(), LATER).tensors
    assert eval(path, names) is value  # noqa: S307


def test_a_simple_namespace_is_looked_into():
    assert paths(state=SimpleNamespace(w=t())) == ["state.w"]


def test_the_shortest_path_wins():
    one = t()
    assert paths(deep=[[[one]]], z=one) == ["z"]


def test_groups_are_the_direct_holders():
    losses = [t(), t()]
    found = walk(h={"loss": losses, "acc": [t()]}, alone=t())
    assert {group.path: len(group.tensors) for group in found.groups.values()} == {"h['loss']": 2, "h['acc']": 1}


def test_elements_of_a_set_have_no_path_of_their_own():
    assert paths(s={t()}) == ["s (an element)"]


def test_cycles_end():
    loop = [t()]
    loop.append(loop)
    own = Plain(w=t())
    vars(own)["me"] = own
    assert paths(loop=loop, own=own) == ["loop[0]", "own.w"]


def test_depth_is_limited():
    assert paths(x=[[[[t()]]]]) == ["x[0][0][0][0]"]
    assert paths(x=[[[[[t()]]]]]) == []


def test_big_containers_are_cut():
    found = walk(big=[t() for _ in range(ELEMENTS + 50)], d={i: t() for i in range(ELEMENTS + 50)})
    assert len(found.tensors) == 2 * ELEMENTS


def test_a_cut_container_is_told():
    assert not walk(big=[t() for _ in range(ELEMENTS + 1)]).complete


def test_time_is_limited():
    found = walk(thread_time() - 1, items=[t() for _ in range(900)])
    assert not found.complete
    assert len(found.tensors) < 100


def test_a_million_numbers_cost_little():
    big = list(range(1_000_000))
    begun = thread_time()
    assert walk(big=big, d=dict.fromkeys(big[:100_000])).tensors == []
    assert thread_time() - begun < 0.5


def test_parts_of_a_module_are_left_to_it_but_not_its_other_fields():
    net = nn.Linear(2, 2)
    vars(net)["cache"] = [t()]
    found = walk(net=net)
    assert [path for path, _ in found.tensors] == ["net.cache[0]"]
    assert [path for path, _ in found.modules] == ["net"]


def test_nothing_inside_an_optimizer_is_listed():
    opt = torch.optim.SGD([nn.Parameter(t())], lr=0.1)
    assert walk(opt=opt).tensors == []


def test_subclasses_of_torch_are_sorted_like_them():
    class Own(nn.Linear):
        pass

    class Marked(torch.Tensor):
        pass

    found = walk(net=Own(2, 2), p=nn.Parameter(t()), m=t().as_subclass(Marked))
    assert [path for path, _ in found.modules] == ["net"]
    assert [path for path, _ in found.tensors] == ["p", "m"]


@pytest.mark.parametrize(
    "name", ["_", "__", "___", "_3", "_i", "_i12", "_ii", "_oh", "_dh", "In", "Out", "exit", "open", 3]
)
def test_names_of_ipython_are_hidden(name):
    assert hidden(name)


@pytest.mark.parametrize("name", ["x", "_x", "_private", "Input", "_3d", "outputs", "open_file", "__all__"])
def test_names_of_the_user_are_not(name):
    assert not hidden(name)


@pytest.mark.parametrize(
    ("key", "text"),
    [("a", "'a'"), (3, "3"), (None, "None"), ((1, 2), "…"), (b"x", "…"), ("x" * 99, repr("x" * 60 + "…"))],
)
def test_text_of_keys(key, text):
    assert key_text(key) == text


# sampling ----------------------------------------------------------------------


def sample(**names):
    return walk_names(names.items(), LATER, sampling=True)


def test_a_variable_in_a_container_counts_for_it():
    losses = [t(), t(), t()]
    found = sample(losses=losses, loss=losses[-1])
    assert [(group.path, len(group.tensors)) for group in found.groups.values()] == [("losses", 3)]


def test_a_container_of_variables_only_is_no_group():
    a, b = t(), t()
    assert walk(a=a, b=b, both=[a, b]).groups == {}


def test_the_last_of_many_containers_counts_although_it_holds_a_variable():
    log = [{"step": step, "loss": t()} for step in range(5)]
    assert len(sample(log=log, loss=log[-1]["loss"]).groups) == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda: {"step": 1, "loss": t()},
        lambda: (1, t()),
        lambda: {"all": {"loss": t()}},
        lambda: SimpleNamespace(loss=t(), n=1),
    ],
)
@pytest.mark.parametrize("inner", [False, True])
def test_the_last_of_many_containers_counts_although_it_is_a_variable(make, inner):
    log = [make() for _ in range(30)]
    last = log[-1]
    loss = last[1] if type(last) is tuple else last.loss if type(last) is SimpleNamespace else last.get("loss")
    found = sample(log=log, last=last, **({"loss": loss} if inner and loss is not None else {}))
    every = [*found.groups.values(), *found.of_variables]
    groups = [one for one in every if (one.element or one.path).startswith("log[")]
    assert len(groups) + len(found.records) == 30


def test_two_lists_with_names_stay_what_they_are_called():
    a, b = [t(), t()], [t(), t()]
    assert {one.path for one in sample(a=a, b=b, both=[a, b]).groups.values()} == {"a", "b"}
    assert "a" in {one.path for one in sample(a=a, both=[a, [t()]]).groups.values()}


def test_a_find_leads_to_the_rest_of_a_container():
    log = [{"step": step, "losses": [t()]} for step in range(300)]
    found = sample(log=log)
    assert (len(found.tensors), found.complete) == (300, True)
    assert min(path for path, _ in found.tensors) == "log[0]['losses'][0]"


def test_tensors_at_the_end_of_a_long_list_of_containers_are_found():
    assert len(sample(log=[[0]] * 3 + [[n] for n in range(200)] + [[t()]]).tensors) == 1


def test_the_end_of_a_list_longer_than_a_sample_is_looked_at():
    (found,) = sample(log=[[n] for n in range(5_000)] + [[t()]]).tensors
    assert found[0] == "log[5000][0]"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: [x],
        lambda x: (1, x),
        lambda x: {"a": 1, "b": x},
        lambda x: Plain(n=1, t=x),
        lambda x: [[1], [x]],
        lambda x: {"a": {"b": Plain(n=[2], t=x)}},
        lambda x: Plain(inner=Plain(n=0, t=[x])),
        lambda x: [Slotted(x)],
    ],
)
@pytest.mark.parametrize("place", [0, 3, 99])
def test_one_tensor_below_a_list_of_containers_is_found_in_what_is_looked_into(wrap, place):
    things = [wrap(n) for n in range(100)]
    assert sample(things=things).tensors == []
    things[place] = wrap(t())
    assert len(sample(things=things).tensors) == 1


@pytest.mark.parametrize("make", [lambda n: [n], lambda n: {"n": n, "tags": [n]}, lambda n: Plain(n=n, tags=[n])])
def test_a_million_objects_cost_little(make):
    big = [make(n) for n in range(20_000)]
    table = {n: [[make(k) for k in range(20)] for _ in range(20)] for n in range(100)}
    begun = thread_time()
    assert sample(big=big, table=table, own=t()).tensors[0][0] == "own"
    assert thread_time() - begun < 0.25


def test_no_instance_dictionary_is_made():
    things = [Counted() for _ in range(10)]
    before = len(gc.get_objects())
    sample(things=things)
    assert len(gc.get_objects()) - before < 5


class Counted:
    def __init__(self):
        self.number, self.tags = 1, [2]


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w


Counted.__module__ = Slotted.__module__ = "__main__"


def test_slots_and_attributes_are_named():
    kept = Plain(cache={"k": [t()]}, inner=Slotted(t()))
    names = {"kept": kept, "one": Slotted([t()])}
    found = walk_names(names.items(), LATER, sampling=True).tensors
    assert sorted(path for path, _ in found) == ["kept.cache['k'][0]", "kept.inner.w", "one.w[0]"]
    assert all(eval(path, names) is value for path, value in found)  # noqa: S307


# strangers -----------------------------------------------------------------------


def touched(*_args, **_kwargs):
    raise AssertionError("touched")


class Untouchable:
    """Raises at everything that code of its class could be asked for."""

    __hash__ = object.__hash__
    __eq__ = __ne__ = __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = touched
    __getattr__ = __getattribute__ = __repr__ = __str__ = __format__ = __dir__ = __instancecheck__ = touched
    __class__ = property(touched)


Untouchable.__module__ = "__main__"


class Lying(Untouchable):
    """Says that it is a tensor."""

    __class__ = torch.Tensor


class LoudList(list[Any]):
    __iter__ = __len__ = __getitem__ = __eq__ = touched


class LoudDict(dict[Any, Any]):
    items = keys = values = __iter__ = __len__ = __getitem__ = touched


class LoudKey:
    __hash__ = object.__hash__
    __repr__ = __str__ = __eq__ = touched


class LoudField:
    @property
    def field(self):
        return touched()

    def __getattr__(self, name):
        return touched()


LoudField.__module__ = "__main__"


class LoudTensor(torch.Tensor):
    __torch_function__ = classmethod(touched)


class LoudModule(nn.Module):
    named_modules = parameters = children = touched
    __iter__ = __len__ = __bool__ = touched


def test_code_of_strangers_is_never_run():
    field = LoudField()
    vars(field)["own"] = t()
    found = walk(
        a=Untouchable(),
        b=object.__new__(Lying),
        c=LoudList([t()]),
        d=LoudDict(x=t()),
        e={LoudKey(): t()},
        f=field,
        g=t().as_subclass(LoudTensor),
        h=LoudModule(),
        i=[Untouchable(), {1: Untouchable()}],
        j=enum.Enum("Color", "RED"),
    )
    assert [path for path, _ in found.tensors] == ["g", "c[0]", "d['x']", "e[…]", "f.own"]
    assert [path for path, _ in found.modules] == ["h"]


def a_class(**methods):
    """A class of the user's whose own class defines these."""
    return type("Meta", (type,), methods)("Made", (), {"__module__": "__main__"})


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: a_class(__eq__=touched, __hash__=type.__hash__), id="eq"),
        pytest.param(lambda: a_class(__hash__=touched), id="hash"),
        pytest.param(lambda: a_class(__eq__=type.__eq__), id="unhashable class"),
        pytest.param(lambda: a_class(__getattribute__=touched), id="getattribute"),
    ],
)
def test_code_of_strange_metaclasses_is_never_run(make):
    made = object.__new__(make())
    assert [path for path, _ in walk(before=made, own=t()).tensors] == ["own"]


def test_a_huge_number_as_a_key():
    assert len(walk(d={10**5_000: t()}, x=t()).tensors) == 2


def test_a_class_without_a_module():
    made = eval("type('Odd', (), {})", {"__builtins__": {"type": type}})  # noqa: S307
    assert [path for path, _ in walk(odd=made(), x=t()).tensors][-1:] == ["x"]


def test_slots_of_libraries_are_not_looked_for():
    class Slots:
        __slots__ = ("w",)

    one: Any = Slots()
    one.w = t()
    assert attributes_of(one) == []
    assert attributes_of(3) == []


def test_another_thread_may_change_the_dictionary():
    busy: dict[Any, Any] = {i: t() for i in range(100)}
    stop = threading.Event()

    def change():
        number = 0
        while not stop.is_set():
            number += 1
            busy[f"k{number % 300}"] = t()
            busy.pop(f"k{(number * 7) % 300}", None)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            assert walk(busy=busy, own=t()).tensors[0][0] == "own"
    finally:
        stop.set()
        thread.join()
