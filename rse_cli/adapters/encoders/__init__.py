"""Encoders: texts into unit vectors. `numpy_bert` for the BERT family, sentence-transformers for any other model."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from rse_cli.adapters.encoders.bert_files import describe_bert
from rse_cli.adapters.encoders.model_files import DEFAULT_MODEL, canonical_name, find_model, verify_weights
from rse_cli.errors import ModelError
from rse_cli.ports import Encoder

__all__ = ["Backend", "agree_with_sentence_transformers", "choose_backend", "load_encoder"]

Backend = Literal["numpy", "sentence-transformers"]

# Below this the two disagree about more than rounding; half precision alone gives 0.99999.
AGREEMENT = 0.9999

# Cases in which tokenizers and pooling differ between models: capitals, accents, numbers, punctuation, CJK, nothing,
# and more than any limit.
SAMPLE = (
    "The segment ends where the evidence ends.",
    "Ümläuts, CAPITALS & naïve café menus — 12,345.67 €",
    "全文检索 and にほんご in one line.",
    "def f(x): return x**2  # code",
    "",
    "one very long document about everything " * 400,
)


def load_encoder(name: str, *, for_query: bool, backend: Backend | None = None) -> Encoder:
    """Load the encoder of a model.

    Parameters
    ----------
    name : str
        The default model's name, a folder, or a name in the local Hugging Face cache.
    for_query : bool
        True for one query as fast as can be; False before an ingest, which first checks every byte of the default
        model (0.1 s).
    backend : str, optional
        What `choose_backend` said when the index was made. By default numpy wherever it understands the model's files,
        without a comparison.

    Returns
    -------
    Encoder
        Ready to encode.

    Raises
    ------
    ModelError
        If the model can't be found, read or trusted, or isn't what was published.
    """
    folder = find_model(name)
    if not for_query and canonical_name(name) == DEFAULT_MODEL:
        verify_weights(folder)
    description = describe_bert(folder) if backend != "sentence-transformers" else None
    if description is not None:
        from rse_cli.adapters.encoders.numpy_bert import load_numpy_bert

        return load_numpy_bert(canonical_name(name), description)
    if backend == "numpy":
        raise ModelError(f"{folder} isn't the model that was indexed: restore it, or rebuild the index")
    from rse_cli.adapters.encoders.sentence_transformers import load_sentence_transformers

    return load_sentence_transformers(canonical_name(name), folder)


def choose_backend(name: str) -> Backend:
    """Decide what runs a model, once, when an index is made.

    Parameters
    ----------
    name : str
        As for `load_encoder`.

    Returns
    -------
    str
        ``numpy`` for the default model, and for others that it understands and in which it agrees with
        sentence-transformers (which takes seconds to find out).

    Raises
    ------
    ModelError
        If the model can't be loaded.
    """
    folder = find_model(name)
    if canonical_name(name) == DEFAULT_MODEL:
        return "numpy"
    if describe_bert(folder) is None:
        return "sentence-transformers"
    try:
        encoder = load_encoder(name, for_query=True, backend="numpy")
        return "numpy" if agree_with_sentence_transformers(folder, encoder) else "sentence-transformers"
    except ModelError:
        # If sentence-transformers can't load it either, loading it will say so.
        return "sentence-transformers"


def agree_with_sentence_transformers(folder: Path, encoder: Encoder) -> bool:
    """Tell whether `encoder` gives the vectors that sentence-transformers gives for the same model.

    Parameters
    ----------
    folder : Path
        The model's files.
    encoder : Encoder
        Loaded from them.

    Returns
    -------
    bool
        True if the cosine is above 0.9999 for each of a few queries and documents.

    Raises
    ------
    ModelError
        If sentence-transformers can't load the model.
    """
    from rse_cli.adapters.encoders.sentence_transformers import load_sentence_transformers

    reference = load_sentence_transformers(encoder.identity.name, folder)
    if reference.identity.dimension != encoder.identity.dimension:
        return False
    (queries, cut), (expected, expected_cut) = encoder.encode_queries(SAMPLE), reference.encode_queries(SAMPLE)
    pairs = ((queries, expected), (encoder.encode_documents(SAMPLE), reference.encode_documents(SAMPLE)))
    return cut == expected_cut and all(np.einsum("ij,ij->i", a, b).min() > AGREEMENT for a, b in pairs)
