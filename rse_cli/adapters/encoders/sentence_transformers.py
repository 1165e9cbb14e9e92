"""Any model that sentence-transformers can load, offline and from safe files only."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rse_cli.adapters.encoders.model_files import hash_weights, read_prompts
from rse_cli.adapters.encoders.wordpiece import (
    Tokens,
    divide_texts,
    encode_texts,
    join_pieces,
    unit_vectors,
    without_limits,
)
from rse_cli.dataclass import dataclass
from rse_cli.errors import ModelError
from rse_cli.ports import ModelIdentity

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Floats = NDArray[np.float32]

# What `max_tokens` says of a model that takes any length, such as static embeddings.
UNLIMITED = 1 << 30

# Read when the libraries are imported: nothing is fetched or reported, nothing is drawn on the terminal.
QUIET_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True, slots=True)
class SentenceTransformersEncoder:
    """An `Encoder` around a `SentenceTransformer`.

    Parameters
    ----------
    identity : ModelIdentity
        What an index remembers of the model.
    model : SentenceTransformer
        The loaded model.
    tokenizer : Tokenizer or None
        A copy of its tokenizer without limits; None if it has none that tells lengths.
    """

    identity: ModelIdentity
    model: Any
    tokenizer: Tokenizer | None

    def encode_queries(self, texts: Sequence[str]) -> tuple[Floats, list[bool]]:
        """Return unit vectors of shape ``(len(texts), dimension)``, and for each text whether it was cut."""
        if not texts:
            return self._no_vectors(), []
        prompt = self.identity.query_prompt
        vectors = _run_quietly(self.model.encode_query, texts, prompt)
        if self.tokenizer is None:
            return unit_vectors(vectors), [False] * len(texts)
        tokens = encode_texts(self.tokenizer, [prompt + text for text in texts])
        return _point_somewhere(vectors, tokens), [len(some) > self.identity.max_tokens for some in tokens]

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors of shape ``(len(texts), dimension)``; a text over the limit is the mean of its pieces."""
        if not texts:
            return self._no_vectors()
        prompt = self.identity.document_prompt
        if self.tokenizer is None:
            return unit_vectors(_run_quietly(self.model.encode_document, texts, prompt))
        division = divide_texts(self.tokenizer, texts, prompt, self.identity.max_tokens)
        vectors = _run_quietly(self.model.encode_document, division.pieces, prompt)
        return join_pieces(_point_somewhere(vectors, division.tokens), division, len(texts))

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text of any length, without prompt and special tokens.

        Without a tokenizer that tells lengths: a third of the text's bytes, more than any makes of prose.
        """
        if self.tokenizer is None:
            return -(-len(text.encode("utf-8", "replace")) // 3)
        special = self.tokenizer.num_special_tokens_to_add(False)
        return len(encode_texts(self.tokenizer, [text])[0]) - int(special)

    def _no_vectors(self) -> Floats:
        """Return the vectors of no text."""
        return np.empty((0, self.identity.dimension), dtype=np.float32)


def load_sentence_transformers(name: str, folder: Path) -> SentenceTransformersEncoder:
    """Load a model; takes seconds, as it imports torch.

    Parameters
    ----------
    name : str
        For the identity.
    folder : Path
        The model's files. Code in it is never run, pickled weights are never read.

    Returns
    -------
    SentenceTransformersEncoder
        Ready to encode.

    Raises
    ------
    ModelError
        If sentence-transformers can't load the model from these files alone.
    """
    weights = hash_weights(folder)
    query_prompt, document_prompt = read_prompts(folder)
    model = _load_model(name, folder)
    limit = getattr(model, "max_seq_length", None)
    # The probe tells the dimension for every kind of last module, and fails here if the model can't encode text.
    try:
        dimension = len(_run_quietly(model.encode_document, ["a"], document_prompt)[0])
    except Exception as error:
        raise ModelError(f"model {name} can't encode text ({_first_line(error)}): use another --model") from None
    identity = ModelIdentity(
        name=name,
        weights=weights,
        dimension=dimension,
        pooling="model",
        max_tokens=int(limit) if limit is not None and limit < UNLIMITED else UNLIMITED,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
    )
    return SentenceTransformersEncoder(identity, model, _copy_tokenizer(model))


def _load_model(name: str, folder: Path) -> Any:
    """Import the library and load `folder` with it, quietly."""
    for key, value in QUIET_ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    for logger in ("sentence_transformers", "transformers", "huggingface_hub"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging as transformers_logging
        except ImportError as error:
            raise ModelError(
                f"model {name} needs sentence-transformers ({error}): pip install sentence-transformers"
            ) from None
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            return SentenceTransformer(
                str(folder),
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:  # the library raises whatever its parts raise
            raise ModelError(_explain_failure(name, folder, error)) from None


def _explain_failure(name: str, folder: Path, error: Exception) -> str:
    """Return one line that says why a model can't be loaded, and what to do."""
    text = str(error)
    if "trust_remote_code" in text or "custom code" in text:
        return f"model {name} wants to run code of its own, which is never done: use another --model"
    if "safetensors" in text and isinstance(error, OSError):
        return f"model {name} has no .safetensors weights in {folder}, pickled ones aren't loaded: convert it first"
    return f"model {name} can't be loaded from {folder} ({_first_line(error)}): fetch it again, or use another"


def _first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _run_quietly(encode: Any, texts: Sequence[str], prompt: str) -> Floats:
    """Call one of the library's encode functions with a prompt of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        vectors = encode(
            # The tokenizers take no lone surrogates.
            [text.encode("utf-8", "replace").decode("utf-8") for text in texts],
            prompt=prompt,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
    return np.asarray(vectors, dtype=np.float32)


def _point_somewhere(vectors: Floats, tokens: Sequence[Tokens]) -> Floats:
    """Return unit vectors; a text without a single token, of which static models know nothing, gets a fixed one."""
    silent = np.array([len(some) == 0 for some in tokens])
    return unit_vectors(np.where(silent[:, None], np.float32(1), vectors))


def _copy_tokenizer(model: Any) -> Tokenizer | None:
    """Return a copy of the model's tokenizer without limits, so that lengths can be told before anything is cut."""
    from tokenizers import Tokenizer

    own = getattr(model, "tokenizer", None)
    fast = own if isinstance(own, Tokenizer) else getattr(own, "backend_tokenizer", None)
    return without_limits(Tokenizer.from_str(fast.to_str())) if isinstance(fast, Tokenizer) else None
