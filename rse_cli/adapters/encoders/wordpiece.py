"""Word pieces: texts into token ids, and texts over a model's limit into pieces within it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rse_cli.dataclass import dataclass
from rse_cli.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Tokens = NDArray[np.int32]

# Texts that are tokenized together: the library's own encodings take some 200 bytes a token, so they are kept few.
TOKENIZED_TOGETHER = 512


# No character makes more word pieces than this (a Hangul syllable makes 3), so that every text can be divided.
MIN_PIECE_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Division:
    """Texts within a model's limit, and the texts that they are pieces of.

    Parameters
    ----------
    pieces : list of str
        Without prompt.
    tokens : list of ndarray of shape (n_tokens,)
        Of prompt and piece, special tokens included.
    owners : ndarray of shape (n_pieces,)
        Position of the text that a piece comes from, ascending.
    """

    pieces: list[str]
    tokens: list[Tokens]
    owners: NDArray[np.intp]


def load_tokenizer(folder: Path, lower_case: bool = False) -> Tokenizer:
    """Load `tokenizer.json`, without padding and truncation.

    Parameters
    ----------
    folder : Path
        The model's folder.
    lower_case : bool
        Lower-case the text before the tokenizer's own normalisation.

    Returns
    -------
    Tokenizer
        Ready to use; one thread, as ingest runs one process per core.

    Raises
    ------
    ModelError
        If the file is missing or can't be understood.
    """
    from tokenizers import Tokenizer

    # The library starts a thread for each core otherwise.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library raises plain Exception
        raise ModelError(f"can't read the tokenizer {folder / 'tokenizer.json'}: {error}") from None
    if lower_case:
        from tokenizers import normalizers

        own = tokenizer.normalizer
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *([own] if own else [])])
    return without_limits(tokenizer)


def without_limits(tokenizer: Tokenizer) -> Tokenizer:
    """Turn off the padding and truncation that a tokenizer's file asks for; returns `tokenizer`."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Tokens]:
    """Return the token ids of each text, special tokens included; nothing is cut."""
    tokens: list[Tokens] = []
    for start in range(0, len(texts), TOKENIZED_TOGETHER):
        some = [_without_surrogates(text) for text in texts[start : start + TOKENIZED_TOGETHER]]
        tokens += [np.array(encoding.ids, dtype=np.int32) for encoding in tokenizer.encode_batch_fast(some)]
    return tokens


def cut_text(tokenizer: Tokenizer, text: str, limit: int) -> Tokens:
    """Return the token ids of the beginning of `text`, `limit` of them with the special ones."""
    encoding = tokenizer.encode(_without_surrogates(text), add_special_tokens=False)
    encoding.truncate(max(0, limit - tokenizer.num_special_tokens_to_add(False)))
    return np.array(tokenizer.post_process(encoding).ids, dtype=np.int32)


def divide_texts(tokenizer: Tokenizer, texts: Sequence[str], prompt: str, limit: int) -> Division:
    """Divide texts into pieces within a model's limit.

    Parameters
    ----------
    tokenizer : Tokenizer
        Without limits of its own.
    texts : sequence of str
        Any text; most are one piece.
    prompt : str
        Goes before each piece.
    limit : int
        Tokens that the model takes, prompt and special tokens included.

    Returns
    -------
    Division
        At least one piece for each text, in order.

    Raises
    ------
    ModelError
        If the prompt leaves no room for text.
    """
    whole = encode_texts(tokenizer, [prompt + text for text in texts])
    pieces: list[str] = []
    kept: list[Tokens] = []
    owners: list[int] = []
    for owner, (text, tokens) in enumerate(zip(texts, whole, strict=True)):
        fits = len(tokens) <= limit
        parts = [text] if fits else _split_to_fit(tokenizer, text, prompt, limit)
        pieces += parts
        kept += [tokens] if fits else encode_texts(tokenizer, [prompt + part for part in parts])
        owners += [owner] * len(parts)
    return Division(pieces, kept, np.array(owners, dtype=np.intp))


def join_pieces(vectors: NDArray[np.float32], division: Division, n_texts: int) -> NDArray[np.float32]:
    """Return one unit vector a text: the mean of its pieces' unit vectors, weighted by their tokens.

    Parameters
    ----------
    vectors : ndarray of shape (n_pieces, dimension)
        Unit vectors.
    division : Division
        What the pieces belong to.
    n_texts : int
        Number of texts that were divided.

    Returns
    -------
    ndarray of shape (n_texts, dimension)
        Unit vectors; a text that is one piece keeps its vector as it is.

    Raises
    ------
    ModelError
        If the pieces of a text cancel out.
    """
    if len(vectors) == n_texts:
        return vectors
    weights = np.array([len(tokens) for tokens in division.tokens], dtype=np.float32)
    starts = np.searchsorted(division.owners, np.arange(n_texts))
    sums = np.add.reduceat(vectors * weights[:, None], starts, axis=0)
    single = np.diff(np.append(starts, len(vectors))) == 1
    joined = unit_vectors(sums)
    joined[single] = vectors[starts[single]]
    return joined


def unit_vectors(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return `vectors`, of shape ``(n, dimension)``, scaled to length 1.

    Raises
    ------
    ModelError
        If a vector is zero or not finite: it would match nothing or everything.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if not np.all(np.isfinite(lengths)) or np.any(lengths < 1e-12):
        raise ModelError("the model gave a vector that is zero or not finite: it is damaged, use another --model")
    units: NDArray[np.float32] = (vectors / lengths[:, None]).astype(np.float32)
    return units


def _split_to_fit(tokenizer: Tokenizer, text: str, prompt: str, limit: int) -> list[str]:
    """Split `text` so that each piece fits when it is tokenized by itself, which can give more tokens than inside."""
    budget = limit - len(encode_texts(tokenizer, [prompt])[0])
    if budget < MIN_PIECE_TOKENS:
        raise ModelError(f"the model's prompt fills its limit of {limit} tokens: use another --model")
    pieces: list[str] = []
    waiting = [(text, budget)]
    while waiting:
        part, size = waiting.pop()
        if len(encode_texts(tokenizer, [prompt + part])[0]) <= limit or len(part) == 1:
            pieces.append(part)
            continue
        parts = _split_at_words(tokenizer, part, size)
        waiting += [(smaller, max(MIN_PIECE_TOKENS, size * 3 // 4)) for smaller in reversed(parts)]
    return pieces


def _split_at_words(tokenizer: Tokenizer, text: str, budget: int) -> list[str]:
    """Split `text` before the last word that begins within each `budget` tokens; a longer word is cut."""
    encoding = tokenizer.encode(_without_surrogates(text), add_special_tokens=False)
    offsets, words = encoding.offsets, encoding.word_ids
    cuts = [0]
    first = 0
    while len(offsets) - first > budget:
        last = first + budget
        begins = (
            i
            for i in range(last, first, -1)
            if words[i] != words[i - 1] or text[offsets[i][0] - 1 : offsets[i][0]].isspace()
        )
        first = next((i for i in begins if offsets[i][0] > cuts[-1]), last)
        cuts.append(max(offsets[first][0], cuts[-1] + 1))
    cuts = [cut for cut in cuts if cut < len(text)]
    if len(cuts) == 1:
        # One token, or tokens of one character: halve the characters.
        cuts.append(max(1, len(text) // 2))
    return [text[a:b] for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def _without_surrogates(text: str) -> str:
    """Replace each lone surrogate, which arguments can hold and no tokenizer takes, by a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
