"""The keys of the sections that aren't a method's, with their defaults and what a project may say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rse_cli.config.kinds import FLAG, LIMITS, SIZE, TEXT, TEXTS, Kind, make_choice, make_number, make_whole
from rse_cli.dataclass import dataclass

PROJECT_FILE = "rse.toml"

WEIGHTS_SECTION = "source_weights"
"""Its keys are globs, not names."""

STORE_SECTION = "store"
"""How to get to object stores; which store, no file says."""

DEFAULT_MODELS = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
"""The names of the model that comes with the package; any other one is a matter of trust."""


@dataclass(frozen=True, slots=True)
class Key:
    """A setting: what it takes, and what holds without it.

    `user_only` is what a project's file may not have at all, `is_limit` what it may lower but not raise.
    """

    kind: Kind
    default: Any = None
    user_only: bool = False
    is_limit: bool = False


KEYS: Mapping[str, Mapping[str, Key]] = {
    "ingest": {
        "model": Key(TEXT, DEFAULT_MODELS[0]),
        "trusted_models": Key(TEXTS, (), user_only=True),
        # Below this there is no room between the shortest chunk and the longest.
        "chunk_chars": Key(make_whole(80), 300),
        "headers": Key(make_choice("normal", "strong", "none"), "normal"),
        "include": Key(TEXTS, ()),
        "exclude": Key(TEXTS, ()),
        "hidden": Key(FLAG, False),
        "no_ignore": Key(FLAG, False),
        "max_size": Key(SIZE, 50_000_000, is_limit=True),
        "read_timeout": Key(make_number(0.1, 86_400), 20.0, is_limit=True),
        "read_memory": Key(SIZE, 1_000_000_000, is_limit=True),
        "lock_timeout": Key(make_number(0, 86_400), 60.0, is_limit=True),
    },
    # In capitals these are the variables that Lance and other programs know.
    STORE_SECTION: {
        "aws_endpoint_url": Key(TEXT, user_only=True),
        "aws_region": Key(TEXT, user_only=True),
        "aws_access_key_id": Key(TEXT, user_only=True),
        "aws_secret_access_key": Key(TEXT, user_only=True),
        "aws_session_token": Key(TEXT, user_only=True),
        "aws_allow_http": Key(FLAG, user_only=True),
        "google_service_account": Key(TEXT, user_only=True),
        "azure_storage_account_name": Key(TEXT, user_only=True),
        "azure_storage_account_key": Key(TEXT, user_only=True),
    },
    "query": {
        "preset": Key(make_choice("precision", "balanced", "find_all"), "balanced"),
        "max_chars": Key(make_whole(1)),
        "fill": Key(FLAG, False),
        "limit": Key(make_whole(1)),
        "min_confidence": Key(make_number(0, 1)),
        "path": Key(TEXTS, ()),
        "type": Key(TEXTS, ()),
        "method": Key(TEXT, "rse"),
        "retriever": Key(make_choice("dense", "lexical", "hybrid"), "hybrid"),
    },
    "refine": {
        "faq_boost": Key(make_number(1, 1_000)),
        "weight_model": Key(make_number(0, 1_000)),
        "weight_base": Key(make_number(0, 1_000)),
        "weight_source": Key(make_number(0, 1_000)),
        "weight_prior": Key(make_number(0, 1)),
    },
    "check": {
        "min": Key(LIMITS, {}),
        "max": Key(LIMITS, {}),
        "each": Key(FLAG, False),
    },
}
"""Keys of the sections that aren't a method's. None as default: the command decides."""

VARIABLE_SECTIONS = ("ingest", "query", "refine")
"""Their keys can be set by variables. The gates of a check belong into a file, or onto the command line of its job."""
