"""The weights of a BERT model, each a view of its file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rse_cli.adapters.encoders.bert_files import BertModel
from rse_cli.adapters.encoders.safetensors import TensorFile, open_tensors
from rse_cli.dataclass import dataclass

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Linear:
    """``x ↦ x·weight.T + bias``; `weight` has shape ``(out, in)``."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True, slots=True)
class Scale:
    """Gain and shift after a layer normalisation, each of shape ``(width,)``."""

    gain: Floats
    shift: Floats


@dataclass(frozen=True, slots=True)
class Layer:
    """One transformer block; `attended` holds what the bias of the values comes to, and that of the keys cancels."""

    query: Linear
    key: Floats
    value: Floats
    attended: Linear
    attended_norm: Scale
    inner: Linear
    outer: Linear
    outer_norm: Scale


@dataclass(frozen=True, slots=True)
class Network:
    """The weights of a model, views of its file."""

    model: BertModel
    words: Floats
    positions: Floats
    embedding_norm: Scale
    layers: tuple[Layer, ...]


def load_network(model: BertModel) -> Network:
    """Map the weights of a model.

    Raises
    ------
    ModelError
        If a tensor is missing or has another shape than `model` asks for.
    """
    file = open_tensors(model.folder / "model.safetensors")
    # Models saved with a head on top keep BERT under a name of its own.
    prefix = "bert." if "bert.embeddings.word_embeddings.weight" in file.entries else ""
    embeddings = prefix + "embeddings."
    types = file.tensor(embeddings + "token_type_embeddings.weight", (model.n_types, model.width))
    positions = file.tensor(embeddings + "position_embeddings.weight", (model.n_positions, model.width))
    return Network(
        model=model,
        words=file.tensor(embeddings + "word_embeddings.weight", (model.vocabulary, model.width)),
        # A single text is all of type 0.
        positions=positions[: model.max_tokens] + types[0],
        embedding_norm=_load_scale(file, embeddings + "LayerNorm", model.width),
        layers=tuple(_load_layer(file, f"{prefix}encoder.layer.{i}.", model) for i in range(model.n_layers)),
    )


def _load_layer(file: TensorFile, prefix: str, model: BertModel) -> Layer:
    """Map the weights of one block."""
    width, inner = model.width, model.inner_width
    value = _load_linear(file, prefix + "attention.self.value", width, width)
    attended = _load_linear(file, prefix + "attention.output.dense", width, width)
    return Layer(
        query=_load_linear(file, prefix + "attention.self.query", width, width),
        key=_load_linear(file, prefix + "attention.self.key", width, width).weight,
        value=value.weight,
        attended=Linear(attended.weight, attended.weight @ value.bias + attended.bias),
        attended_norm=_load_scale(file, prefix + "attention.output.LayerNorm", width),
        inner=_load_linear(file, prefix + "intermediate.dense", width, inner),
        outer=_load_linear(file, prefix + "output.dense", inner, width),
        outer_norm=_load_scale(file, prefix + "output.LayerNorm", width),
    )


def _load_linear(file: TensorFile, name: str, n_in: int, n_out: int) -> Linear:
    """Map one linear layer."""
    return Linear(file.tensor(name + ".weight", (n_out, n_in)), file.tensor(name + ".bias", (n_out,)))


def _load_scale(file: TensorFile, name: str, width: int) -> Scale:
    """Map gain and shift of one layer normalisation."""
    return Scale(file.tensor(name + ".weight", (width,)), file.tensor(name + ".bias", (width,)))
