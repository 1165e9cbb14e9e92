"""Classes made by `rse_cli.dataclass` do what the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

from rse_cli.dataclass import dataclass


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)
    d: float = field(default=0.5, repr=False)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError(self.a)

    @property
    def twice(self) -> int:
        return 2 * self.a


@dataclass(frozen=True, slots=True)
class Ours:
    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)
    d: float = field(default=0.5, repr=False)

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError(self.a)

    @property
    def twice(self) -> int:
        return 2 * self.a


@dataclass(slots=True)
class Changeable:
    a: int
    b: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Hashed:
    a: int
    b: str


def tell(cls: type, call: Callable[[Any], Any]) -> object:
    """Return what a call gives, or the kind of error that it raises."""
    try:
        result = call(cls)
    except Exception as fault:
        return type(fault)
    return result


CALLS: list[Callable[[Any], Any]] = [
    lambda cls: dataclasses.astuple(cls(1)),
    lambda cls: dataclasses.astuple(cls(1, "y", [2], 3.0)),
    lambda cls: dataclasses.astuple(cls(1, d=3.0, b="y")),
    lambda cls: dataclasses.astuple(cls(d=3.0, c=[4], b="y", a=1)),
    lambda cls: dataclasses.asdict(cls(1)),
    lambda cls: cls(),
    lambda cls: cls(b="y"),
    lambda cls: cls(1, a=1),
    lambda cls: cls(1, e=2),
    lambda cls: cls(1, "y", [2], 3.0, 4),
    lambda cls: cls(-1),
    lambda cls: dataclasses.replace(cls(1), a=-1),
    lambda cls: repr(dataclasses.replace(cls(1, "y"), c=[7])).partition("(")[2],
    lambda cls: cls(1) == cls(1),
    lambda cls: cls(1) == cls(1, d=0.25),
    lambda cls: cls(1) == (1, "x", [], 0.5),
    lambda cls: cls(1).c is cls(1).c,
    lambda cls: hash(cls(1)),
    lambda cls: setattr(cls(1), "a", 2),
    lambda cls: delattr(cls(1), "a"),
    lambda cls: cls(1).__dict__,
    lambda cls: cls(3).twice,
    lambda cls: cls.__match_args__,
    lambda cls: cls.__slots__,
    lambda cls: copy.copy(cls(1, c=[2])) == cls(1, c=[2]),
    lambda cls: copy.deepcopy(cls(1, c=[2])) == cls(1, c=[2]),
    lambda cls: pickle.loads(pickle.dumps(cls(1, c=[2]))) == cls(1, c=[2]),
    lambda cls: dataclasses.is_dataclass(cls(1)),
    lambda cls: [one.name for one in dataclasses.fields(cls)],
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_gives_what_it_gives_with_the_standard_library(call: Callable[[Any], Any]) -> None:
    assert tell(Ours, call) == tell(Standard, call)


def test_equal_instances_have_one_hash() -> None:
    assert len({Hashed(1, "x"), Hashed(a=1, b="x"), Hashed(1, "y")}) == 2


def test_instances_that_are_not_frozen_can_be_changed_and_have_no_hash() -> None:
    one = Changeable(1)
    one.a, one.b = 2, [3]
    assert one == Changeable(2, [3])
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_an_error_names_the_fields_and_what_was_given() -> None:
    with pytest.raises(TypeError, match=r"^Hashed\(a, b\) can't be made from \(1, c\)$"):
        Hashed(1, c=2)  # type: ignore[call-arg]


def test_a_method_that_a_class_has_stays() -> None:
    @dataclass(frozen=True, slots=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

    assert repr(Own(1)) == "own"


def test_a_class_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="without slots"):
        dataclass(frozen=True, slots=False)
