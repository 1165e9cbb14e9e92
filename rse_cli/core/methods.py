"""The table of the named methods: what each does, when to use it, and its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from typing import Any, TypeAlias

from rse_cli.core.dsrag_params import DSRAG_PRESETS, DsragParams
from rse_cli.core.method_params import (
    AverageParams,
    HierarchicalParams,
    ParentParams,
    SentenceWindowParams,
    TopKParams,
    WindowParentParams,
)
from rse_cli.core.params import PRESETS, RseParams
from rse_cli.core.spelling import suggest_name
from rse_cli.dataclass import dataclass
from rse_cli.errors import UsageError

MethodParams: TypeAlias = (
    RseParams
    | DsragParams
    | TopKParams
    | SentenceWindowParams
    | ParentParams
    | HierarchicalParams
    | WindowParentParams
    | AverageParams
)

DEFAULT_METHOD = "rse"
DEFAULT_PRESET = "balanced"


@dataclass(frozen=True, slots=True)
class Method:
    """A named way from a query to passages.

    Parameters
    ----------
    does : str
        One line on what it returns.
    suits : str
        One line on when to use it.
    params : type
        The class of its parameters; its defaults are the method's.
    presets : mapping of str to parameters
        Empty for methods without presets.
    takes_retriever : bool
        Whether its hits come from the retriever that the user chooses.
    """

    does: str
    suits: str
    params: type[MethodParams]
    presets: Mapping[str, MethodParams] = field(default_factory=dict)
    takes_retriever: bool = False


METHODS: dict[str, Method] = {
    "rse": Method(
        "Runs of adjacent chunks whose length the evidence decides, chosen exactly and priced in characters.",
        "By default: answers that span several chunks, few characters, and silence when nothing fits.",
        RseParams,
        PRESETS,
    ),
    "dsrag": Method(
        "Relevant segments as dsRAG published them: rank decay, budgets in blocks, a greedy choice.",
        "To compare with dsRAG, or to move from it without other results.",
        DsragParams,
        DSRAG_PRESETS,
    ),
    "top-k": Method(
        "The k best blocks of about 800 characters, wherever they stand.",
        "As the baseline, or for facts that one block holds.",
        TopKParams,
        takes_retriever=True,
    ),
    "sentence-window": Method(
        "The best chunks with the sentences around them.",
        "For short facts in prose that need a little context.",
        SentenceWindowParams,
        takes_retriever=True,
    ),
    "parent": Method(
        "The sections that hold the best chunks, whole or in parts cut at ends of paragraphs.",
        "For documents with short sections that make sense only whole, such as manuals and FAQs.",
        ParentParams,
        takes_retriever=True,
    ),
    "hierarchical": Method(
        "Segments by rse from the documents with the nearest summaries only.",
        "For many documents on many subjects, when the answer must come from documents about the question.",
        HierarchicalParams,
    ),
    "window-parent": Method(
        "Half sentence windows, half parents, none inside another.",
        "When some questions need a sentence and others a section.",
        WindowParentParams,
        takes_retriever=True,
    ),
    "average": Method(
        "Segments of blocks whose mean similarity is high enough, in document order.",
        "To compare with the naive rule of tutorials.",
        AverageParams,
    ),
}

_SWITCHES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def list_method_keys() -> dict[str, dict[str, type]]:
    """Return for every method the names and types of its parameters, as configuration files hold them.

    Examples
    --------
    >>> list_method_keys()["parent"]
    {'k': <class 'int'>, 'parent_chars': <class 'int'>}
    """
    return {
        name: {one.name: type(getattr(method.params(), one.name)) for one in fields(method.params)}
        for name, method in METHODS.items()
    }


def choose_method_params(method: str, preset: str | None, overrides: Mapping[str, Any]) -> MethodParams:
    """Return the parameters of a method, or of one of its presets, with some of them replaced.

    Parameters
    ----------
    method : str
        A key of `METHODS`.
    preset : str or None
        One of the method's presets; None takes ``balanced`` where there are presets.
    overrides : mapping
        Values by name; texts are converted.

    Returns
    -------
    MethodParams
        Of the method's class.

    Raises
    ------
    UsageError
        If the method or the preset is unknown, the method has no presets, a name is unknown (names the methods that
        own it, else the nearest known one), or a value can't be read or lies outside its range. Every fault of the
        overrides is named.

    Examples
    --------
    >>> choose_method_params("sentence-window", None, {"window": "3"})
    SentenceWindowParams(k=5, window=3)
    >>> choose_method_params("top-k", None, {"window": 3})
    Traceback (most recent call last):
    rse_cli.errors.UsageError: unknown parameter 'window' of method top-k; it belongs to sentence-window, window-parent
    """
    base = _choose_base(method, preset)
    # Of the defaults: a preset may hold a whole number where any number will do.
    known = list_method_keys()[method]
    faults: list[str] = []
    values: dict[str, Any] = {}
    for name, value in overrides.items():
        if name not in known:
            faults.append(f"unknown parameter {name!r} of method {method}{_name_owner(name, known)}")
            continue
        try:
            values[name] = _READERS[known[name]](value)
        except (KeyError, OverflowError, TypeError, ValueError):
            faults.append(f"{name} must be {_EXPECTS[known[name]]}, not {value!r}")
    try:
        chosen = replace(base, **values)
    except UsageError as error:
        faults.append(str(error))
    if faults:
        raise UsageError("; ".join(faults))
    return chosen


def _choose_base(method: str, preset: str | None) -> MethodParams:
    if method not in METHODS:
        hint = suggest_name(method, METHODS) or f": use {', '.join(METHODS)}"
        raise UsageError(f"unknown method {method!r}{hint}")
    presets = METHODS[method].presets
    if not presets:
        if preset is not None:
            raise UsageError(f"the method {method} has no presets; leave --preset out, or change it with --set")
        return METHODS[method].params()
    if (preset or DEFAULT_PRESET) not in presets:
        hint = suggest_name(preset, presets)
        raise UsageError(f"unknown preset {preset!r} of method {method}: use {', '.join(presets)}{hint}")
    return presets[preset or DEFAULT_PRESET]


def _name_owner(name: str, known: Mapping[str, type]) -> str:
    """Say which methods have the parameter, else which name may be meant."""
    owners = [method for method, one in METHODS.items() if name in {each.name for each in fields(one.params)}]
    if owners:
        return f"; it belongs to {', '.join(owners)}"
    everywhere = sorted({each.name for one in METHODS.values() for each in fields(one.params)})
    return suggest_name(name, known) or suggest_name(name, everywhere) or f"; it has {', '.join(known)}"


def _read_whole(value: Any) -> int:
    """Take a whole number; ``int`` alone would cut 2.5 to 2 in silence."""
    whole = int(value)
    if isinstance(value, bool) or (not isinstance(value, str) and whole != value):
        raise ValueError(value)
    return whole


def _read_number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError(value)
    return float(value)


def _read_switch(value: Any) -> bool:
    return value if isinstance(value, bool) else _SWITCHES[str(value).strip().lower()]


_READERS: dict[type, Callable[[Any], Any]] = {int: _read_whole, float: _read_number, bool: _read_switch, str: str}
_EXPECTS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
