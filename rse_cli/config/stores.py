"""Which store a command is about: a folder, or a place in an object store with what is needed to get there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rse_cli.config.files import locate_user_file, read_file
from rse_cli.config.keys import KEYS, STORE_SECTION
from rse_cli.config.variables import STORE_VARIABLE, list_misspelt
from rse_cli.errors import ConfigError, UsageError
from rse_cli.ports import Bucket, StorePlace

_ALIASES = {"aws_endpoint_url": "AWS_ENDPOINT", "aws_region": "AWS_DEFAULT_REGION"}
"""Other variables that say the same."""

_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3")

_URL = re.compile(r"https?://[^/\s]+\S*")
"""What the libraries that go there take; anything else stops them in the midst of a request."""

_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<place>.*)")

_TYPO = re.compile(r"(?:s3|gs|az):/", re.IGNORECASE)


def choose_store(flag: str | None, environ: Mapping[str, str]) -> StorePlace | None:
    """Return the store that ``--store`` or ``RSE_STORE`` names, or None to look for one; no file can name it.

    Raises
    ------
    ConfigError
        If the variable is misspelt, since another store would be found in its place; or ``[store]`` can't be used.
    UsageError
        If it is an address of another kind.
    """
    if faults := list_misspelt(environ, [STORE_VARIABLE]):
        raise ConfigError("; ".join(faults))
    given = flag or environ.get(STORE_VARIABLE)
    return read_place(given, environ) if given else None


def read_place(text: str, environ: Mapping[str, str]) -> StorePlace:
    """Return the folder or the bucket that a text names.

    Raises
    ------
    ConfigError, UsageError
        See `choose_store`.
    """
    address = _ADDRESS.fullmatch(text)
    if address is None:
        if _TYPO.match(text):
            raise UsageError(f"{text!r} lacks a slash: an object store is s3://bucket/prefix, gs:// or az:// likewise")
        return Path(text).expanduser()
    scheme, place = address["scheme"].lower(), address["place"].strip("/")
    if scheme not in ("s3", "gs", "az") or not place:
        raise UsageError(f"a store is a folder or s3://bucket/prefix, gs:// or az:// likewise, not {text!r}")
    if faults := [
        f"{name} must begin with http:// or https://, not {value!r}"
        for name in _ENDPOINTS
        if scheme == "s3" and (value := environ.get(name)) and not _URL.fullmatch(value)
    ]:
        raise ConfigError("; ".join(faults))
    return Bucket(f"{scheme}://{place}", tuple(sorted(_read_options(environ).items())))


def _read_options(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the user's file says of object stores and no variable does, as Lance takes it."""
    path = locate_user_file(environ)
    faults: list[str] = []
    file = read_file(path, str(path), None, faults) if path else None
    options = {}
    table = file.content.get(STORE_SECTION) if file else None
    for key, value in table.items() if file and isinstance(table, dict) else ():
        try:
            read = KEYS[STORE_SECTION][key].kind.read(value)
            if key.upper() in _ENDPOINTS and not _URL.fullmatch(str(read)):
                faults.append(f"{file.name_place(STORE_SECTION, key)}: {key} must begin with http:// or https://")
                continue
        except (KeyError, ValueError):
            # The value may be a secret.
            known = KEYS[STORE_SECTION]
            takes = f"must be {known[key].kind.expects}" if key in known else f"is none of {', '.join(known)}"
            faults.append(f"{file.name_place(STORE_SECTION, key)}: {key} {takes}")
        else:
            if not any(environ.get(name) for name in (key.upper(), _ALIASES.get(key, ""))):
                options[key] = str(read).lower() if isinstance(read, bool) else str(read)
    if faults:
        raise ConfigError("; ".join(faults))
    return options
