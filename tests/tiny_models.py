"""Small BERT models with random weights, written file by file as sentence-transformers lays them out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 4, 64, 48

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,:;-!?'()全文检索"
WORDS = ["the", "index", "segment", "evidence", "query", "passage", "##ment", "##s", "##ing", "long", "words"]
VOCABULARY = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS]


def write_model(
    folder: Path,
    *,
    pooling: str = "mean",
    prompts: Mapping[str, str] | None = None,
    limit: int = 24,
    lower_case: bool = True,
    kind: str = "F32",
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
) -> Path:
    """Write a complete model to `folder` and return it; `config` overrides keys of config.json."""
    (folder / "1_Pooling").mkdir(parents=True)
    names = ["Transformer", "Pooling", "Normalize"]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(names)
    ]
    files = {
        "modules.json": modules,
        "config.json": {**_bert_config(), **(config or {})},
        "sentence_bert_config.json": {"max_seq_length": limit, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": dict(prompts or {}), "default_prompt_name": None},
        "1_Pooling/config.json": {
            "word_embedding_dimension": WIDTH,
            "pooling_mode_cls_token": pooling == "cls",
            "pooling_mode_mean_tokens": pooling == "mean",
            "pooling_mode_max_tokens": pooling == "max",
        },
        "tokenizer.json": _tokenizer(lower_case),
        "tokenizer_config.json": {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": lower_case,
            "model_max_length": POSITIONS,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    write_safetensors(folder / "model.safetensors", _random_weights(seed), kind)
    return folder


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[np.float32]], kind: str = "F32", pad: int = 0) -> None:
    """Write tensors in the format's own layout; `pad` spaces after the header move the data off its alignment."""
    header: dict[str, Any] = {}
    data = b""
    for name, values in tensors.items():
        raw = _narrow(values, kind)
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    write_raw_safetensors(path, json.dumps(header).encode() + b" " * pad, data)


def write_raw_safetensors(path: Path, header: bytes, data: bytes) -> None:
    """Write a file with any header, however wrong."""
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


def _narrow(values: NDArray[np.float32], kind: str) -> bytes:
    if kind == "F16":
        return values.astype("<f2").tobytes()
    if kind == "BF16":
        return (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    return values.astype("<f4").tobytes()


def _random_weights(seed: int) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(seed)

    def draw(*shape: int, scale: float = 0.3, mean: float = 0.0) -> NDArray[np.float32]:
        return (mean + scale * random.standard_normal(shape)).astype(np.float32)

    tensors = {
        "embeddings.word_embeddings.weight": draw(len(VOCABULARY), WIDTH, scale=1),
        "embeddings.position_embeddings.weight": draw(POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": draw(2, WIDTH),
        "embeddings.LayerNorm.weight": draw(WIDTH, mean=1),
        "embeddings.LayerNorm.bias": draw(WIDTH),
    }
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        shapes = {
            "attention.self.query": (WIDTH, WIDTH),
            "attention.self.key": (WIDTH, WIDTH),
            "attention.self.value": (WIDTH, WIDTH),
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (INNER, WIDTH),
            "output.dense": (WIDTH, INNER),
        }
        for name, shape in shapes.items():
            tensors[f"{prefix}{name}.weight"] = draw(*shape)
            tensors[f"{prefix}{name}.bias"] = draw(shape[0])
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            tensors[f"{prefix}{name}.weight"] = draw(WIDTH, mean=1)
            tensors[f"{prefix}{name}.bias"] = draw(WIDTH)
    return tensors


def _bert_config() -> dict[str, Any]:
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "vocab_size": len(VOCABULARY),
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }


def _tokenizer(lower_case: bool) -> dict[str, Any]:
    ids = {token: i for i, token in enumerate(VOCABULARY)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    template = [
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    ]
    return {
        "version": "1.0",
        "truncation": {"max_length": 8, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": None,
        "added_tokens": [{"id": i, "content": token, **flags} for i, token in enumerate(SPECIAL)],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template,
            "pair": [
                *template,
                {"Sequence": {"id": "B", "type_id": 1}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 1}},
            ],
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }


def write_cross_encoder(
    folder: Path,
    *,
    favourite: str = "evidence",
    labels: int = 1,
    activation: str | None = None,
    kind: str = "F32",
    config: Mapping[str, Any] | None = None,
) -> Path:
    """Write a cross-encoder to `folder` and return it: the denser a pair is with one word, the higher its score.

    Attention is even over all tokens, so the first token ends with the share of `favourite` among them in its first
    coordinate, which pooler and classifier pass on. `activation` is the path of a torch class for the configuration;
    `config` overrides keys of config.json.
    """
    folder.mkdir(parents=True)
    tokenizer = _tokenizer(lower_case=True)
    tokenizer["model"]["vocab"].setdefault(favourite, len(VOCABULARY))
    vocabulary = tokenizer["model"]["vocab"]
    settings = {
        **_bert_config(),
        "architectures": ["BertForSequenceClassification"],
        "vocab_size": 1 + max(vocabulary.values()),
        "max_position_embeddings": PAIR_POSITIONS,
        "num_labels": labels,
        "id2label": {str(i): f"LABEL_{i}" for i in range(labels)},
        "label2id": {f"LABEL_{i}": i for i in range(labels)},
        **({"sentence_transformers": {"activation_fn": activation}} if activation else {}),
        **(config or {}),
    }
    limits = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": PAIR_POSITIONS}
    for name, content in {
        "config.json": settings,
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": limits,
    }.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    write_safetensors(folder / "model.safetensors", _counting_weights(vocabulary, favourite, labels), kind)
    return folder


# Enough for a header and a chunk that are spelled letter by letter.
PAIR_POSITIONS = 512


def _counting_weights(vocabulary: Mapping[str, int], favourite: str, labels: int) -> dict[str, NDArray[np.float32]]:
    """Weights of the network that measures the share of one token; every other token looks the same."""
    tensors = {f"bert.{name}": np.zeros_like(values) for name, values in _random_weights(0).items()}
    words = np.tile(np.where(np.arange(WIDTH) % 2, 1, -1), (1 + max(vocabulary.values()), 1)).astype(np.float32)
    words[:, :2] = 0
    words[vocabulary[favourite], 0] = 8
    tensors["bert.embeddings.word_embeddings.weight"] = words
    tensors["bert.embeddings.position_embeddings.weight"] = np.zeros((PAIR_POSITIONS, WIDTH), np.float32)
    for name, values in tensors.items():
        if name.endswith("LayerNorm.weight"):
            values[:] = 1
        if name.endswith(("attention.self.value.weight", "attention.output.dense.weight")):
            values[0, 0] = 1
    pooler = np.zeros((WIDTH, WIDTH), np.float32)
    pooler[0, 0] = 1
    classifier = np.zeros((labels, WIDTH), np.float32)
    classifier[-1, 0] = 8
    bias = np.zeros(labels, np.float32)
    bias[-1] = -4
    return tensors | {
        "bert.pooler.dense.weight": pooler,
        "bert.pooler.dense.bias": np.zeros(WIDTH, np.float32),
        "classifier.weight": classifier,
        "classifier.bias": bias,
    }
