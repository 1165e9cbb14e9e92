"""A cross-encoder of sentence-transformers that scores texts against a query, offline and from safe files only."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rse_cli.adapters.encoders.model_files import find_model
from rse_cli.adapters.encoders.safetensors import open_tensors
from rse_cli.adapters.encoders.sentence_transformers import QUIET_ENVIRONMENT
from rse_cli.dataclass import dataclass
from rse_cli.errors import ModelError

Scores = NDArray[np.float64]

# Whose names need no prefix, as in the CrossEncoder of sentence-transformers.
DEFAULT_ORGANISATION = "cross-encoder"

# Pairs in one pass, the library's own default: more only fills memory on a CPU.
BATCH_PAIRS = 32


@dataclass(frozen=True, slots=True)
class CrossEncoderReranker:
    """A `Reranker` around a `CrossEncoder`.

    Parameters
    ----------
    name : str
        For messages.
    model : CrossEncoder
        The loaded model, with one label or two.
    """

    name: str
    model: Any

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        """Return how well each text answers the query.

        Parameters
        ----------
        query : str
            What is asked.
        texts : sequence of str
            Candidates. Query and text together are cut at the model's limit by its own tokenizer, without a word.

        Returns
        -------
        ndarray of shape (len(texts),)
            In [0, 1], higher is better. For a model with one label: its activation's value if that is a sigmoid, else
            ``1/(1 + exp(−value))``. For two labels: the probability of the last, by softmax of the logits.

        Raises
        ------
        ModelError
            If the model fails, or gives something that isn't a number.
        """
        if not texts:
            return np.empty(0)
        pairs = [(_without_surrogates(query), _without_surrogates(text)) for text in texts]
        values = _predict(self.name, self.model, pairs)
        if not np.all(np.isfinite(values)):
            raise ModelError(
                f"reranker {self.name} gave a score that isn't finite: it is damaged, use another --rerank"
            )
        return calibrate_scores(values, ends_in_sigmoid(self.model.activation_fn))


def load_reranker(name: str) -> CrossEncoderReranker:
    """Load a reranker; takes seconds, as it imports torch.

    Parameters
    ----------
    name : str
        A folder, or a name in the local Hugging Face cache; nothing is downloaded. Code in the folder is never run,
        pickled weights are never read.

    Returns
    -------
    CrossEncoderReranker
        Ready to score.

    Raises
    ------
    ModelError
        If there is no such model, it can't be loaded, it is no cross-encoder, or it has more than two labels.
    """
    folder = _find_folder(name)
    weights = _list_tensors(name, folder)
    model = _load_model(name, folder)
    untrained = _find_untrained(model, weights)
    if untrained:
        raise ModelError(
            f"{name} is no reranker: it holds no weights for {untrained}; give a cross-encoder to --rerank"
        )
    labels = int(model.num_labels)
    if labels > 2:
        raise ModelError(f"reranker {name} has {labels} labels, which make no score: use one with one or two")
    reranker = CrossEncoderReranker(name, model)
    # Fails here, before anything was retrieved, if the model can't take pairs of texts.
    reranker.score("a", ["b"])
    return reranker


def calibrate_scores(values: NDArray[np.floating[Any]], is_probability: bool) -> Scores:
    """Return values of a cross-encoder as scores in [0, 1].

    Parameters
    ----------
    values : ndarray of shape (n,) or (n, 2)
        Finite. One label: after the model's activation. Two labels: logits.
    is_probability : bool
        Whether values of one label are in [0, 1] already.

    Returns
    -------
    ndarray of shape (n,)
        ``1/(1 + exp(−v))`` for one label, ``1/(1 + exp(v₀ − v₁))`` for two, which is the softmax's second part.

    Examples
    --------
    >>> calibrate_scores(np.array([0.0, 1000.0, -1000.0]), False).tolist()
    [0.5, 1.0, 0.0]
    >>> calibrate_scores(np.array([[2.0, 2.0], [0.0, 50.0]]), False).tolist()
    [0.5, 1.0]
    """
    wide = np.asarray(values, dtype=np.float64)
    if wide.ndim == 1 and is_probability:
        return np.clip(wide, 0.0, 1.0)
    logits = wide if wide.ndim == 1 else wide[:, 1] - wide[:, 0]
    # By tanh, which doesn't overflow: 1/(1 + exp(−v)) = (1 + tanh(v/2))/2.
    scores: Scores = (1 + np.tanh(logits / 2)) / 2
    return scores


def ends_in_sigmoid(activation: Any) -> bool:
    """Tell whether a torch activation gives values in [0, 1]: a sigmoid, or several functions the last of which is."""
    from torch.nn import Sequential, Sigmoid

    while isinstance(activation, Sequential) and len(activation):
        activation = activation[-1]
    return isinstance(activation, Sigmoid)


def _find_folder(name: str) -> Path:
    """Find the model's folder on this machine; a name without an owner is one of the library's own models."""
    given = Path(name).expanduser()
    full_name = name if "/" in name or given.is_dir() else f"{DEFAULT_ORGANISATION}/{name}"
    try:
        return find_model(full_name)
    except ModelError:
        if given.is_dir() or name.startswith((".", "/", "~")) or name.count("/") > 1:
            raise ModelError(
                f"{name} is no folder with a reranker: give a model's folder or name to --rerank"
            ) from None
        raise ModelError(
            f"no reranker {name} on this machine: give a folder to --rerank, or fetch it first with "
            f"python -c \"import huggingface_hub as h; h.snapshot_download('{full_name}')\""
        ) from None


def _list_tensors(name: str, folder: Path) -> set[str]:
    """Return the names of all tensors in the model's safe files."""
    files = sorted(path for path in folder.rglob("*.safetensors") if path.is_file())
    if not files:
        raise ModelError(
            f"reranker {name} has no .safetensors weights in {folder}, pickled ones aren't loaded: convert it first"
        )
    return {tensor for path in files for tensor in open_tensors(path).entries}


def _load_model(name: str, folder: Path) -> Any:
    """Import the library and load `folder` with it, quietly."""
    for key, value in QUIET_ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    for logger in ("sentence_transformers", "transformers", "huggingface_hub"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from sentence_transformers import CrossEncoder
            from transformers.utils import logging as transformers_logging
        except ImportError as error:
            raise ModelError(
                f"reranker {name} needs sentence-transformers ({error}): pip install sentence-transformers"
            ) from None
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            return CrossEncoder(
                str(folder),
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:  # the library raises whatever its parts raise
            raise ModelError(_explain_failure(name, folder, error)) from None


def _explain_failure(name: str, folder: Path, error: Exception) -> str:
    """Return one line that says why a model can't be loaded."""
    if "trust_remote_code" in str(error) or "custom code" in str(error):
        return f"reranker {name} wants to run code of its own, which is never done: use another --rerank"
    return f"reranker {name} can't be loaded from {folder} ({_first_line(error)}): fetch it again, or use another"


def _find_untrained(model: Any, weights: set[str]) -> str:
    """Return the name of a part of the classifier that `weights` lack: the library fills it with random numbers.

    Notes
    -----
    So it does for every model of embeddings. Only the classifier is looked at, whose names aren't translated between
    versions, and only that of ``…ForSequenceClassification``; other heads lie in files of their own or are tied.
    """
    network = model.transformers_model
    if network is None or not type(network).__name__.endswith("ForSequenceClassification"):
        return ""
    body = f"{network.base_model_prefix}."
    return next((key for key in network.state_dict() if not key.startswith(body) and key not in weights), "")


def _predict(name: str, model: Any, pairs: list[tuple[str, str]]) -> NDArray[np.float32]:
    """Return the model's value for each pair, or its two logits."""
    from torch.nn import Identity

    two = int(model.num_labels) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = model.predict(
                pairs,
                batch_size=BATCH_PAIRS,
                show_progress_bar=False,
                activation_fn=Identity() if two else model.activation_fn,
            )
        except Exception as error:  # torch raises whatever its parts raise
            raise ModelError(f"reranker {name} can't score these texts ({_first_line(error)})") from None
    if values.shape != ((len(pairs), 2) if two else (len(pairs),)):
        raise ModelError(f"reranker {name} gives {values.shape} numbers for {len(pairs)} texts: use another --rerank")
    return np.asarray(values)


def _first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, which the tokenizers don't take."""
    return text.encode("utf-8", "replace").decode("utf-8")
