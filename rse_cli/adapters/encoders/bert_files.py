"""What the files of a BERT model say, and whether that is all that `numpy_bert` computes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rse_cli.adapters.encoders.model_files import read_json, read_prompts
from rse_cli.dataclass import dataclass

# Settings of config.json that change the forward pass, with the one value that numpy_bert computes. A missing
# key has this value too, as in transformers.BertConfig.
BERT_CONFIG = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "quantization_config": None,
    "auto_map": None,
}

# What transformers.BertConfig takes where config.json is silent.
BERT_DEFAULTS = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}

# Keys of sentence_bert_config.json that are understood, or say what every text model says.
TRANSFORMER_KEYS = {"max_seq_length", "do_lower_case", "transformer_task", "modality_config", "module_output_name"}

POOLING_FLAGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


@dataclass(frozen=True, slots=True)
class BertModel:
    """What the files of a BERT model say, as far as the forward pass needs it.

    Parameters
    ----------
    folder : Path
        Holds ``model.safetensors`` and ``tokenizer.json``.
    width, n_layers, n_heads, inner_width : int
        Sizes of the network.
    vocabulary, n_positions, n_types : int
        Rows of the three embedding tables.
    epsilon : float
        Of the layer normalisation.
    pooling : str
        ``mean`` or ``cls``.
    max_tokens : int
        Longest input, special tokens included.
    lower_case : bool
        Whether text is lower-cased before the tokenizer.
    query_prompt, document_prompt : str
        What goes before each text.
    """

    folder: Path
    width: int
    n_layers: int
    n_heads: int
    inner_width: int
    vocabulary: int
    n_positions: int
    n_types: int
    epsilon: float
    pooling: str
    max_tokens: int
    lower_case: bool
    query_prompt: str
    document_prompt: str


def describe_bert(folder: Path) -> BertModel | None:
    """Read the files of a model that `numpy_bert` understands completely.

    Parameters
    ----------
    folder : Path
        A sentence-transformers model.

    Returns
    -------
    BertModel or None
        None if anything in the files asks for more than that: another architecture, pooling or module, remote code.
    """
    if not (folder / "model.safetensors").is_file() or not (folder / "tokenizer.json").is_file():
        return None
    try:
        config = read_json(folder / "config.json", {})
        transformer = read_json(folder / "sentence_bert_config.json", {})
        pooling = _read_pooling(folder)
        if pooling is None or not _is_plain_bert(config) or not _is_plain_transformer(transformer):
            return None
        sizes = {key: int(config.get(key, default)) for key, default in BERT_DEFAULTS.items()}
        query_prompt, document_prompt = read_prompts(folder)
        return BertModel(
            folder=folder,
            width=sizes["hidden_size"],
            n_layers=sizes["num_hidden_layers"],
            n_heads=sizes["num_attention_heads"],
            inner_width=sizes["intermediate_size"],
            vocabulary=sizes["vocab_size"],
            n_positions=sizes["max_position_embeddings"],
            n_types=sizes["type_vocab_size"],
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            pooling=pooling,
            max_tokens=_read_limit(folder, transformer, sizes["max_position_embeddings"]),
            lower_case=bool(transformer.get("do_lower_case", False)),
            query_prompt=query_prompt,
            document_prompt=document_prompt,
        )
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        return None


def _is_plain_bert(config: Mapping[str, Any]) -> bool:
    """Tell whether `config.json` asks for nothing beyond the BERT of the paper."""
    if config.get("model_type") != "bert" or config.get("hidden_size", 768) % config.get("num_attention_heads", 12):
        return False
    return all(config.get(key, value) == value for key, value in BERT_CONFIG.items())


def _is_plain_transformer(transformer: Mapping[str, Any]) -> bool:
    """Tell whether `sentence_bert_config.json` asks for nothing beyond token embeddings of text."""
    text = (transformer.get("modality_config") or {}).get("text", {"method": "forward"})
    return (
        set(transformer) <= TRANSFORMER_KEYS
        and transformer.get("transformer_task", "feature-extraction") == "feature-extraction"
        and transformer.get("module_output_name", "token_embeddings") == "token_embeddings"
        and text.get("method") == "forward"
        and text.get("method_output_name", "last_hidden_state") == "last_hidden_state"
    )


def _read_pooling(folder: Path) -> str | None:
    """Return ``mean`` or ``cls`` if the modules are Transformer, Pooling and perhaps Normalize, else None."""
    modules = read_json(folder / "modules.json", [])
    types = [str(module["type"]) for module in modules]
    kinds = [kind.rpartition(".")[2] for kind in types]
    if not all(kind.startswith("sentence_transformers.") for kind in types) or modules[0]["path"] != "":
        return None
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        return None
    pooling = read_json(folder / modules[1]["path"] / "config.json", {})
    if not pooling.get("include_prompt", True):
        return None
    mode = pooling.get("pooling_mode")
    if mode is None:
        flags = [flag for flag, value in pooling.items() if flag.startswith("pooling_mode_") and value]
        mode = POOLING_FLAGS.get(flags[0]) if len(flags) == 1 else None
    return mode if mode in POOLING_FLAGS.values() else None


def _read_limit(folder: Path, transformer: Mapping[str, Any], n_positions: int) -> int:
    """Return the longest input: `max_seq_length`, else the tokenizer's own limit, never more than the positions."""
    tokenizer = read_json(folder / "tokenizer_config.json", {})
    limit = transformer.get("max_seq_length") or tokenizer.get("model_max_length") or n_positions
    if limit < 3:
        raise ValueError("no room for a word between the special tokens")
    return min(int(limit), n_positions)
