"""BERT in numpy: the tokens of many texts in one matrix, attention text by text.

The forward pass is that of Devlin et al., "BERT" (2018), as `transformers.BertModel` computes it. Nothing is padded,
but where each text has to begin at a certain row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.adapters.encoders.bert_weights import Floats, Layer, Linear, Network, Scale
from rse_cli.adapters.encoders.wordpiece import Tokens, unit_vectors
from rse_cli.errors import ModelError

Integers = NDArray[np.intp]

# Tokens in one pass. More re-reads the weights less often (42 MB a pass), less needs less memory; flat from 2,000.
BATCH_TOKENS = 4096

# Rows that go together through everything between two attentions. Fewer stay nearer the cache, but the library packs
# the weights anew for each block: 1,024 measured 8 % faster than 256, and as fast as the whole batch. A multiple of the
# rows at which queries begin.
BLOCK_ROWS = 1008

# Floats that an elementwise function goes over at a time, so that they and its scratch, twice as large, stay in a cache
# of 1 MB: 32,768 measured 1.5 % faster in all than 16,384, and 1 % than 65,536.
BLOCK_FLOATS = 32768

# Scores of attention (floats) that are computed together: half of a cache of 1 MB.
GROUP_SCORES = 131072

# A row of attention whose sum is below this, relative to the greatest score of its text, has lost precision.
LOW_SUM = 1e-10

# gelu(x) = x·(1 + erf(x/√2))/2 ≈ x/(1 + exp(x·P(x²))). Coefficients of P, lowest first, by our own minimax fit of gelu
# over |x| ≤ 6.5; error below 7e-8 before rounding, 2e-7 in float32. The highest is negative, so that the exponential
# goes on to its limits beyond.
GELU = (
    -1.5957685374559292,
    -0.07266829556395502,
    6.605123745028591e-05,
    0.00011054744425693191,
    -7.948235112290235e-06,
    2.675722673131404e-07,
    -3.6279877409679885e-09,
)


def embed_tokens(network: Network, texts: Sequence[Tokens], tile: int = 1) -> Floats:
    """Return one unit vector a text.

    Parameters
    ----------
    network : Network
        The weights.
    texts : sequence of ndarray of shape (n_tokens,)
        The tokens of each text, special ones included: at least one, at most the model's limit.
    tile : int
        Each text begins at a multiple of so many rows.

    Returns
    -------
    ndarray of shape (len(texts), width)
        In the order of `texts`; what else is in the batch changes it by rounding only (1e-6), and not at all where
        `tile` is a multiple of the rows that the library's kernels take at once.

    Raises
    ------
    ModelError
        If a token lies outside the vocabulary, or a vector is zero or not finite.
    """
    pooled = np.empty((len(texts), network.model.width), dtype=np.float32)
    lengths = np.array([len(tokens) for tokens in texts], dtype=np.intp)
    # Beyond |x| = 1,000 gelu overflows on its way to the right limit; what damaged weights give is refused at the end.
    with np.errstate(over="ignore", invalid="ignore"):
        for members in _batches(lengths):
            flat = np.concatenate([texts[i] for i in members])
            if flat.max() >= network.model.vocabulary:
                raise ModelError(
                    f"{network.model.folder}: tokenizer.json and model.safetensors belong to different models"
                )
            pooled[members] = _run_batch(network, flat, lengths[members], tile)
    return unit_vectors(pooled)


def _batches(lengths: Integers) -> Iterator[Integers]:
    """Group texts, shortest first, so that equal lengths meet and a group has about `BATCH_TOKENS` tokens."""
    order = np.argsort(lengths, kind="stable")
    starts = np.concatenate([[0], np.cumsum(lengths[order])[:-1]]) // BATCH_TOKENS if len(order) else order
    return (members for members in np.split(order, np.flatnonzero(np.diff(starts)) + 1) if len(members))


def _run_batch(network: Network, flat: Tokens, lengths: Integers, tile: int) -> Floats:
    """Run texts of ascending `lengths`, their tokens one after another in `flat`; return pooled rows."""
    starts = np.concatenate([[0], np.cumsum(-(-lengths // tile) * tile)])
    places = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = np.repeat(starts[:-1], lengths) + places
    # Rows between texts are zero, and nothing reads what becomes of them.
    states = np.zeros((starts[-1], network.model.width), dtype=np.float32)
    states[rows] = network.words[flat] + network.positions[places]
    inner = np.empty((min(BLOCK_ROWS, len(states)), network.model.inner_width), dtype=np.float32)
    _normalise(states, network.embedding_norm, network.model.epsilon)
    projected = np.empty((3, *states.shape), dtype=np.float32)
    context = np.zeros_like(states)
    for layer in network.layers:
        _project(layer, states, projected, np.float32((network.model.width // network.model.n_heads) ** -0.5))
        _attend(projected, starts, lengths, network.model.n_heads, context)
        for row in range(0, len(states), BLOCK_ROWS):
            block = slice(row, row + BLOCK_ROWS)
            _feed_forward(layer, states[block], context[block], inner, network.model.epsilon)
    if network.model.pooling == "cls":
        first: Floats = states[starts[:-1]]
        return first
    # The mean's scale doesn't matter, as vectors get unit length: the sum over each text is enough.
    sums: Floats = np.add.reduceat(states[rows], np.cumsum(lengths) - lengths, axis=0)
    return sums


def _project(layer: Layer, states: Floats, projected: Floats, scale: np.float32) -> None:
    """Write scaled queries, keys and values to `projected`.

    The bias of the keys adds the same to all scores of a token, so that the softmax cancels it; that of the values is
    part of `layer.attended`, because the weights of a token sum to 1.
    """
    for weight, out in zip((layer.query.weight, layer.key, layer.value), projected, strict=True):
        np.matmul(states, weight.T, out=out)
    projected[0] += layer.query.bias
    projected[0] *= scale


def _apply(linear: Linear, rows: Floats, out: Floats) -> Floats:
    """Write ``rows·weight.T + bias`` to `out`."""
    np.matmul(rows, linear.weight.T, out=out)
    out += linear.bias
    return out


def _attend(projected: Floats, starts: Integers, lengths: Integers, n_heads: int, context: Floats) -> None:
    """Write to `context` what each token gathers from the tokens of its text; equal lengths go together."""
    width = context.shape[1] // n_heads
    text = 0
    while text < len(lengths):
        length = int(lengths[text])
        same = int(np.searchsorted(lengths, length, side="right")) - text
        count = max(1, min(same, GROUP_SCORES // (n_heads * length * length)))
        rows = slice(starts[text], starts[text + count])
        query, key, value, out = (
            part[rows].reshape(count, -1, n_heads, width)[:, :length].transpose(0, 2, 1, 3)
            for part in (*projected, context)
        )
        _attend_group(query, key.transpose(0, 1, 3, 2), value, out)
        text += count


def _attend_group(query: Floats, key: Floats, value: Floats, out: Floats) -> None:
    """Write ``softmax(query·key)·value`` to `out`; all of shape ``(texts, heads, …)``."""
    scores = np.matmul(query, key)
    # One maximum for a text is enough against overflow, and several times as fast as one a row.
    scores -= scores.max(axis=(1, 2, 3), keepdims=True)
    np.exp(scores, out=scores)
    # A product sums short rows five times as fast as `sum`.
    ones = np.ones((scores.shape[-1], 1), dtype=np.float32)
    sums = np.matmul(scores, ones)
    for text in np.flatnonzero(sums.min(axis=(1, 2, 3)) < LOW_SUM):
        np.matmul(query[text], key[text], out=scores[text])
        scores[text] -= scores[text].max(axis=-1, keepdims=True)
        np.exp(scores[text], out=scores[text])
        np.matmul(scores[text], ones, out=sums[text])
    # The scores lie in one piece of memory, unlike `out`.
    scores *= np.reciprocal(sums, out=sums)
    np.matmul(scores, value, out=out)


def _feed_forward(layer: Layer, states: Floats, context: Floats, inner: Floats, epsilon: float) -> None:
    """Turn `states` into the block's output, in place; `context` and `inner` are used up."""
    inner = inner[: len(states)]
    states += _apply(layer.attended, context, np.empty_like(context))
    _normalise(states, layer.attended_norm, epsilon)
    np.matmul(states, layer.inner.weight.T, out=inner)
    _gelu(inner, layer.inner.bias)
    states += _apply(layer.outer, inner, context)
    _normalise(states, layer.outer_norm, epsilon)


def _normalise(rows: Floats, scale: Scale, epsilon: float) -> None:
    """Give each row mean 0 and variance 1, then gain and shift, in place."""
    width = np.float32(rows.shape[1])
    rows -= (rows.sum(axis=1) / width)[:, None]
    variance = np.einsum("ij,ij->i", rows, rows) / width
    rows *= (1 / np.sqrt(variance + np.float32(epsilon)))[:, None]
    rows *= scale.gain
    rows += scale.shift


def _gelu(rows: Floats, bias: Floats) -> None:
    """Add `bias` to each row and replace each value by its gelu, in place."""
    lowest, *middle, highest = (np.float32(coefficient) for coefficient in GELU)
    count = max(1, BLOCK_FLOATS // rows.shape[1])
    scratch = np.empty((2, min(count, len(rows)), rows.shape[1]), dtype=np.float32)
    for start in range(0, len(rows), count):
        x = rows[start : start + count]
        square, t = scratch[:, : len(x)]
        x += bias
        np.square(x, out=square)
        np.multiply(square, highest, out=t)
        for coefficient in reversed(middle):
            t += coefficient
            t *= square
        t += lowest
        t *= x
        np.exp(t, out=t)
        t += np.float32(1)
        x /= t
