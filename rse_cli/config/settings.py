"""Settings: flag > environment > the project's rse.toml > the user's file > default.

Sections and keys are spelled like the flags and the keys of ``--set``. Nothing that a file says is executed, and a
project's file, which may be a stranger's, can't choose a model from outside the project unless the user has named that
model too, nor raise the limits that protect the user.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from rse_cli.config.files import SettingsFile, locate_user_file, read_file
from rse_cli.config.keys import (
    DEFAULT_MODELS,
    KEYS,
    PROJECT_FILE,
    STORE_SECTION,
    VARIABLE_SECTIONS,
    WEIGHTS_SECTION,
    Key,
)
from rse_cli.config.kinds import FLAG, NUMBER, TEXT, WHOLE, Kind, make_number, show_value
from rse_cli.config.variables import STORE_VARIABLE, list_misspelt, name_variable
from rse_cli.core.spelling import suggest_name
from rse_cli.dataclass import dataclass
from rse_cli.errors import ConfigError, UsageError

_METHOD_KINDS: Mapping[type, Kind] = {bool: FLAG, int: WHOLE, float: NUMBER, str: TEXT}

_NO_STORE = "a file can't choose the store: use --store or RSE_STORE"

_MAX_FAULTS = 20
"""More than anyone mends at once, and still a message that can be read."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a command.

    Parameters
    ----------
    ingest, query, refine, check : dict
        Every key of the section, defaults included; lists are tuples of str.
    methods : dict of dict
        Per method the parameters that were set; those left out have the preset's value.
    sources : dict of (str, str) to str
        Per section and key where the value comes from: ``"--model"``, ``"RSE_MODEL"``, ``"rse.toml line 3"``,
        ``"default"``.
    source_weights : dict of str to float
        Globs of ``[source_weights]`` with the weight of the documents that they match.
    """

    ingest: dict[str, Any]
    query: dict[str, Any]
    methods: dict[str, dict[str, Any]]
    sources: dict[tuple[str, str], str]
    source_weights: dict[str, float] = field(default_factory=dict)
    check: dict[str, Any] = field(default_factory=dict)
    refine: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Collected:
    """Values with their source by section and key, the strongest last, and the faults found on the way."""

    keys: Mapping[str, Mapping[str, Key]]
    values: dict[tuple[str, str], tuple[Any, str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    source_weights: dict[str, float] = field(default_factory=dict)

    def get(self, section: str, key: str) -> tuple[Any, str]:
        """Return the strongest value so far and its source, or the default."""
        return self.values.get((section, key), (self.keys[section][key].default, "default"))

    def take(self, section: str, key: str, value: Any, source: str, from_text: bool = False) -> None:
        """Check a value and keep it in place of weaker ones."""
        kind = self.keys[section][key].kind
        try:
            taken = kind.parse(value) if from_text else kind.read(value)
            weaker = self.get(section, key)[0]
            self.values[section, key] = (weaker | taken if kind.merge else taken), source
        except ValueError:
            hint = suggest_name(value, kind.names)
            # A flag says its key already.
            named = source if source.startswith("--") and source != "--set" else f"{source}: {key}"
            # The texts of a repeatable flag are no list to those who gave them.
            shown = map(show_value, value if source.startswith("--") and isinstance(value, list) else [value])
            self.faults.append(f"{named} must be {kind.expects}, not {', '.join(shown)}{hint}")


def load_settings(
    root: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
    method_keys: Mapping[str, Mapping[str, type]],
    check_model: bool = True,
) -> Settings:
    """Put the settings of a command together.

    Parameters
    ----------
    root : Path or None
        The folder that may hold the project's ``rse.toml``; None for no project.
    environ : mapping
        The environment: ``RSE_`` and the key in capitals for every key of ``[ingest]``, ``[query]`` and the methods,
        lists with commas; ``XDG_CONFIG_HOME`` and ``HOME`` for the user's file. An empty variable counts as none, one
        that is nearly one of these as misspelt.
    flags : mapping
        By key. None or an empty list: not given. Under ``set`` the texts ``key=value`` of ``--set``, which go to the
        chosen method, or to ``[refine]``.
    method_keys : mapping
        Per method its parameters with their types (bool, int, float or str).
    check_model : bool
        Whether the model will be used, so that one from outside the project must be refused.

    Returns
    -------
    Settings
        With every value checked.

    Raises
    ------
    ConfigError
        For files and variables; all faults at once, each with its file and line.
    UsageError
        For flags alone.
    """
    collected = _Collected(_list_keys(method_keys))
    user_path = locate_user_file(environ)
    user = read_file(user_path, str(user_path), None, collected.faults) if user_path else None
    project = read_file(root / PROJECT_FILE, PROJECT_FILE, root, collected.faults) if root else None
    if user:
        _take_file(collected, user, is_users=True)
    trusted = {collected.get("ingest", "model")[0], *collected.get("ingest", "trusted_models")[0]}
    limits = {pair: collected.get(*pair)[0] for pair in _list_pairs(KEYS) if KEYS[pair[0]][pair[1]].is_limit}
    if project:
        _take_file(collected, project, is_users=False)
    _take_variables(collected, environ, method_keys)
    before = len(collected.faults)
    _take_flags(collected, flags)
    of_flags = len(collected.faults) - before
    if root and check_model:
        _check_model(collected, root, trusted, user_path)
    _check_limits(collected, limits, user_path)
    if faults := collected.faults:
        more = [f"and {len(faults) - _MAX_FAULTS} more"] if len(faults) > _MAX_FAULTS else []
        raise (UsageError if len(faults) == of_flags else ConfigError)("; ".join(faults[:_MAX_FAULTS] + more))
    return _make_settings(collected, method_keys)


def _list_keys(method_keys: Mapping[str, Mapping[str, type]]) -> dict[str, Mapping[str, Key]]:
    """Add the methods' sections to the table of keys."""
    methods = {
        method: {key: Key(_METHOD_KINDS[kind]) for key, kind in types.items()} for method, types in method_keys.items()
    }
    return {**KEYS, **methods}


def _list_pairs(keys: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(section, key) for section, names in keys.items() for key in names]


def _take_file(collected: _Collected, file: SettingsFile, is_users: bool) -> None:
    """Take the values of a file, and note every section, key and value that can't be used."""
    for section, table in file.content.items():
        if section == WEIGHTS_SECTION and isinstance(table, dict):
            _take_weights(collected, file, table)
        elif section not in collected.keys:
            place = file.name_place(section)
            collected.faults.append(f"{place}: {_explain_unknown(collected.keys, section, isinstance(table, dict))}")
        elif not isinstance(table, dict):
            fault = _NO_STORE if section == STORE_SECTION else f"[{section}] must be a section"
            collected.faults.append(f"{file.name_place(section)}: {fault}")
        else:
            _take_section(collected, file, section, table, is_users)


def _take_weights(collected: _Collected, file: SettingsFile, table: dict[str, Any]) -> None:
    """Take globs and weights; a later file's come after an earlier one's, so that they win."""
    kind = make_number(0, 1)
    for glob, weight in table.items():
        try:
            collected.source_weights[glob] = kind.read(weight)
        except ValueError:
            place = file.name_place(WEIGHTS_SECTION, glob)
            collected.faults.append(f"{place}: the weight of {glob!r} must be {kind.expects}, not {weight!r}")


def _take_section(
    collected: _Collected, file: SettingsFile, section: str, table: dict[str, Any], is_users: bool
) -> None:
    """Take the values of one section."""
    keys = collected.keys[section]
    for key, value in table.items():
        place = file.name_place(section, key)
        if key not in keys:
            elsewhere = [other for other, names in collected.keys.items() if key in names]
            hint = f"; it belongs under [{elsewhere[0]}]" if elsewhere else _suggest(key, keys)
            collected.faults.append(f"{place}: unknown key {key!r} in [{section}]{hint}")
        elif keys[key].user_only and not is_users:
            collected.faults.append(f"{place}: {key} is for the user's own file, not for a project")
        else:
            collected.take(section, key, value, place)


def _explain_unknown(keys: Mapping[str, Mapping[str, Key]], name: str, is_section: bool) -> str:
    """Say what is wrong with a name at the top level."""
    if is_section:
        return f"unknown section {name!r}{_suggest(name, keys)}"
    sections = [section for section, names in keys.items() if name in names]
    hint = f"; it belongs under [{sections[0]}]" if sections else ", and keys belong in a section such as [query]"
    return f"unknown key {name!r} outside of a section{hint}"


def _suggest(name: str, known: Iterable[str]) -> str:
    """Name the nearest known spelling, if one is near."""
    names = sorted(known)
    return suggest_name(name, names) or (f"; known are {', '.join(names)}" if names else "")


def _suggest_parameter(name: str, known: Iterable[str]) -> str:
    """Name the nearest parameter of a method, or else of refinement."""
    return suggest_name(name, [*known, *KEYS["refine"]]) or _suggest(name, known)


def _take_variables(
    collected: _Collected, environ: Mapping[str, str], method_keys: Mapping[str, Mapping[str, type]]
) -> None:
    """Take what the environment says, and note variables that are nearly one of ours."""
    pairs = [(one, key) for one in VARIABLE_SECTIONS for key in KEYS[one] if not KEYS[one][key].user_only]
    # A method's parameter has no prefix either; `max_chars` is the one of [query], which reaches every method.
    shared = {key for one in VARIABLE_SECTIONS for key in KEYS[one]}
    pairs += [(method, key) for method, key in _list_pairs(method_keys) if key not in shared]
    for section, key in pairs:
        variable = name_variable(key)
        if environ.get(variable):
            collected.take(section, key, environ[variable], variable, from_text=True)
    names = [STORE_VARIABLE, *(name_variable(key) for _, key in pairs)]
    collected.faults.extend(list_misspelt(environ, names))


def _take_flags(collected: _Collected, flags: Mapping[str, Any]) -> None:
    """Take what was given on the command line."""
    section_of = {key: section for section, key in _list_pairs(KEYS)}
    for key, value in flags.items():
        if key != "set" and value is not None and value not in ([], ()):
            # What adds up is taken one by one, so that a message names the one that is wrong.
            parts = [[one] for one in value] if KEYS[section_of[key]][key].kind.merge else [value]
            for part in parts:
                collected.take(section_of[key], key, part, f"--{key.replace('_', '-')}")
    method = collected.get("query", "method")[0]
    known = collected.keys.get(method, {}) if method not in KEYS else {}
    for text in flags.get("set") or ():
        key, equals, value = text.partition("=")
        if not equals:
            collected.faults.append(f"--set takes key=value, not {text!r}")
        elif key in KEYS["refine"]:
            collected.take("refine", key, value, "--set", from_text=True)
        elif key not in known:
            owners = [name for name, keys in collected.keys.items() if name not in KEYS and key in keys]
            hint = f"; it belongs to {', '.join(owners)}" if owners else _suggest_parameter(key, known)
            collected.faults.append(f"--set: the method {method} has no parameter {key!r}{hint}")
        else:
            collected.take(method, key, value, "--set", from_text=True)


def _check_model(collected: _Collected, root: Path, trusted: Collection[str], user_path: Path | None) -> None:
    """Refuse a model that only the project's file names, unless it is the default one or lies in the project."""
    model, source = collected.get("ingest", "model")
    if not source.startswith(PROJECT_FILE) or model in DEFAULT_MODELS:
        return
    # os.path, since it takes a name that is no path at all for a folder that isn't there.
    folder = os.path.realpath(root / model)
    if os.path.isdir(folder) and Path(folder).is_relative_to(os.path.realpath(root)):  # noqa: PTH112
        collected.values["ingest", "model"] = (folder, source)
    elif model not in trusted:
        collected.faults.append(
            f"{source}: the model {model!r} is neither the default one nor a folder in this project; if you trust it, "
            f"run rse ingest --model {shlex.quote(model)}"
            + (f" or add it to trusted_models under [ingest] in {user_path}" if user_path else "")
        )


def _check_limits(collected: _Collected, limits: Mapping[tuple[str, str], float], user_path: Path | None) -> None:
    """Refuse what only the project's file says, where it is more than the user allows."""
    for (section, key), limit in limits.items():
        value, source = collected.get(section, key)
        if source.startswith(PROJECT_FILE) and value > limit:
            # 15 digits: every size in full, no number of seconds with a tail.
            collected.faults.append(
                f"{source}: a project can lower {key}, but not raise it from {limit:,.15g} to {value:,.15g}; "
                f"if you trust it, set {name_variable(key)}" + (f", or {key} in {user_path}" if user_path else "")
            )


def _make_settings(collected: _Collected, method_keys: Mapping[str, Mapping[str, type]]) -> Settings:
    """Fill in the defaults."""
    values: dict[str, dict[str, Any]] = {section: {} for section in collected.keys}
    sources: dict[tuple[str, str], str] = {}
    for section, key in _list_pairs(collected.keys):
        value, source = collected.get(section, key)
        if section in KEYS or source != "default":
            values[section][key] = value
            sources[section, key] = source
    return Settings(
        ingest=values["ingest"],
        query=values["query"],
        check=values["check"],
        refine=values["refine"],
        methods={method: values[method] for method in method_keys},
        sources=sources,
        source_weights=collected.source_weights,
    )
