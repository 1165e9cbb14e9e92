"""The least that any such program in Python must do: ``floor_query.py STORE MODEL``, or ``... --index``.

It imports typer, numpy, tokenizers and lance, turns a question into tokens with the tokenizer of the model in the
folder MODEL, opens the table and runs one flat search with a fixed vector, or one in the vector index as lance searches
it by default. It reads no weights, encodes nothing, looks up no words and scores nothing. It ends, as `rse` does,
without the shutdown of the interpreter.
"""

from __future__ import annotations

import gc
import json
import os
import sys


def main() -> None:
    """Search once and print how many chunks came back."""
    gc.disable()
    # Read when numpy is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import lance
    import numpy as np
    import typer  # noqa: F401 - its import is part of the floor
    from tokenizers import Tokenizer

    Tokenizer.from_file(f"{sys.argv[2]}/tokenizer.json").encode("Which model is asked?")

    dataset = lance.dataset(f"{sys.argv[1]}/chunks.lance")
    dimension = dataset.schema.field("vector").type.list_size
    vector = np.full(dimension, dimension**-0.5, np.float32)
    nearest = {"column": "vector", "q": vector, "k": 50, "metric": "cosine", "use_index": "--index" in sys.argv}
    found = dataset.to_table(columns=["gid", "_distance"], nearest=nearest)
    print(json.dumps({"segments": found.num_rows}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
