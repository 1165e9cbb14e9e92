"""Whether the model of an index may be loaded: one that only the index names, from outside of its root, may not."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from rse_cli.config import PROJECT_FILE, Settings
from rse_cli.config.consent import remember_model, was_named
from rse_cli.errors import StoreError


def check_consent(folder: Path, root: Path, model: str, settings: Settings) -> None:
    """Refuse the model of an index that was found, if it is a folder outside the root that the user has never named.

    Raises
    ------
    StoreError
        Saying how to consent.
    """
    if not leads_out(root, model):
        return
    if model in settings.ingest["trusted_models"] or named_model(settings) == model or was_named(os.environ, model):
        return
    raise StoreError(
        f"{folder} was made with the model in {model}, outside of {root}: if you trust it, "
        f"set RSE_MODEL={shlex.quote(model)}, or name the index with --store {shlex.quote(str(folder))}"
    )


def named_model(settings: Settings) -> str | None:
    """Return the model that the user has named by flag, variable or in their own file; None for any other."""
    from rse_cli.adapters.encoders.model_files import canonical_name

    source = settings.sources["ingest", "model"]
    if source == "default" or source.startswith(PROJECT_FILE):
        return None
    return canonical_name(settings.ingest["model"])


def leads_out(root: Path, model: str) -> bool:
    """Tell whether a model is a folder that doesn't lie in the root; a name in the local cache is none."""
    from rse_cli.adapters.encoders.model_files import DEFAULT_MODEL, locate_folder

    folder = None if model == DEFAULT_MODEL else locate_folder(model)
    return folder is not None and not folder.resolve().is_relative_to(root.resolve())


def remember_choice(root: Path, settings: Settings) -> None:
    """Note the model that the user has named, so that the index is used without naming it again."""
    model = named_model(settings)
    if model is not None and leads_out(root, model):
        remember_model(os.environ, model)
