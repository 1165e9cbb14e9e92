"""The usual script for vector search, to compare with: ``baseline_query.py STORE MODEL QUERY``, or ``--batch FILE``.

It loads the model with sentence-transformers, which encodes all queries together, searches the same table with lancedb,
and prints five chunks of each as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import lancedb
from sentence_transformers import SentenceTransformer


def main() -> None:
    """Answer one query, or each line of a file."""
    store, model, *asked = sys.argv[1:]
    queries = Path(asked[1]).read_text(encoding="utf-8").splitlines() if asked[0] == "--batch" else asked
    vectors = SentenceTransformer(model, device="cpu").encode_query(queries, normalize_embeddings=True)
    table = lancedb.connect(store).open_table("chunks")
    for query, vector in zip(queries, vectors, strict=True):
        found = table.search(vector, vector_column_name="vector").distance_type("cosine").limit(5)
        rows = found.select(["path", "start_char", "end_char", "text", "_distance"]).to_list()
        segments = [{key: row[key] for key in ("path", "start_char", "end_char", "text")} for row in rows]
        print(json.dumps({"query": query, "segments": segments}, ensure_ascii=False))


if __name__ == "__main__":
    main()
