"""An encoder without torch: `bert_forward` between a tokenizer and pooled unit vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rse_cli.adapters.encoders.bert_files import BertModel
from rse_cli.adapters.encoders.bert_forward import embed_tokens
from rse_cli.adapters.encoders.bert_weights import Floats, Network, load_network
from rse_cli.adapters.encoders.model_files import hash_weights
from rse_cli.adapters.encoders.wordpiece import cut_text, divide_texts, encode_texts, join_pieces, load_tokenizer
from rse_cli.dataclass import dataclass
from rse_cli.ports import ModelIdentity

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Every query begins at a multiple of so many rows. The library's kernels take 4, 8 or 12 rows at once, and sum in
# another order at other places and in what is left over, so that a query's bits would depend on those beside it.
QUERY_ROWS = 24

# Most processors' kernels keep to the bits with half of that as well, which `choose_rows` finds out: 13 % less time for
# many queries of 23 tokens on average.
FEW_QUERY_ROWS = 12

# Queries for which it is worth finding out.
MANY_QUERIES = 16


@dataclass(frozen=True, slots=True)
class NumpyBert:
    """An `Encoder` without torch.

    Parameters
    ----------
    identity : ModelIdentity
        What an index remembers of the model.
    tokenizer : Tokenizer
        Without limits of its own.
    network : Network
        The weights.
    """

    identity: ModelIdentity
    tokenizer: Tokenizer
    network: Network

    def encode_queries(self, texts: Sequence[str]) -> tuple[Floats, list[bool]]:
        """Return unit vectors of shape ``(len(texts), dimension)``, and for each text whether it was cut.

        A vector has the same bits whatever else is asked with it.
        """
        limit = self.identity.max_tokens
        prompted = [self.identity.query_prompt + text for text in texts]
        whole = encode_texts(self.tokenizer, prompted)
        truncated = [len(tokens) > limit for tokens in whole]
        kept = [
            cut_text(self.tokenizer, text, limit) if cut else tokens
            for text, tokens, cut in zip(prompted, whole, truncated, strict=True)
        ]
        rows = choose_rows(self.network) if len(texts) >= MANY_QUERIES else QUERY_ROWS
        return embed_tokens(self.network, kept, rows), truncated

    def encode_documents(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors of shape ``(len(texts), dimension)``; a text over the limit is the mean of its pieces."""
        division = divide_texts(self.tokenizer, texts, self.identity.document_prompt, self.identity.max_tokens)
        vectors = embed_tokens(self.network, division.tokens)
        return join_pieces(vectors, division, len(texts))

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text of any length, without prompt and special tokens."""
        special = self.tokenizer.num_special_tokens_to_add(False)
        return len(encode_texts(self.tokenizer, [text])[0]) - int(special)


def load_numpy_bert(name: str, model: BertModel) -> NumpyBert:
    """Load a model; the weights stay in its file until they are used.

    Parameters
    ----------
    name : str
        For the identity.
    model : BertModel
        What its files say.

    Returns
    -------
    NumpyBert
        Ready to encode.

    Raises
    ------
    ModelError
        If the weights or the tokenizer can't be read or don't fit the description.
    """
    identity = ModelIdentity(
        name=name,
        weights=hash_weights(model.folder),
        dimension=model.width,
        pooling=model.pooling,
        max_tokens=model.max_tokens,
        query_prompt=model.query_prompt,
        document_prompt=model.document_prompt,
    )
    return NumpyBert(identity, load_tokenizer(model.folder, model.lower_case), load_network(model))


def choose_rows(network: Network, multiply: Callable[[Floats, Floats], Floats] = np.matmul) -> int:
    """Return at multiples of how many rows queries may begin: `FEW_QUERY_ROWS` where that shows in no bit.

    Parameters
    ----------
    network : Network
        The products are tried with its weights.
    multiply : callable
        The library's product of two matrices.

    Returns
    -------
    int
        `FEW_QUERY_ROWS` if a product has the same bits for those rows wherever they stand, alone or beside others,
        else `QUERY_ROWS`.
    """
    layer = network.layers[0]
    for weight in (layer.query.weight, layer.inner.weight, layer.outer.weight):
        rows: Floats = np.resize(network.words[:96], (4 * FEW_QUERY_ROWS, weight.shape[1]))
        blocks = [rows[at : at + FEW_QUERY_ROWS] for at in range(0, len(rows), FEW_QUERY_ROWS)]
        alone = np.concatenate([multiply(block, weight.T) for block in blocks])
        for end in range(FEW_QUERY_ROWS, len(rows) + 1, FEW_QUERY_ROWS):
            if not np.array_equal(multiply(rows[:end], weight.T), alone[:end]):
                return QUERY_ROWS
    return FEW_QUERY_ROWS
