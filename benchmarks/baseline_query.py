"""The usual script for one vector search, to compare with: ``baseline_query.py STORE MODEL QUERY``.

It loads the model with sentence-transformers, searches the same table with lancedb, and prints five chunks as JSON.
"""

from __future__ import annotations

import json
import sys

import lancedb
from sentence_transformers import SentenceTransformer


def main() -> None:
    """Answer one query."""
    store, model, query = sys.argv[1:]
    vector = SentenceTransformer(model, device="cpu").encode_query(query, normalize_embeddings=True)
    table = lancedb.connect(store).open_table("chunks")
    found = table.search(vector, vector_column_name="vector").distance_type("cosine").limit(5)
    rows = found.select(["path", "start_char", "end_char", "text", "_distance"]).to_list()
    segments = [{key: row[key] for key in ("path", "start_char", "end_char", "text")} for row in rows]
    print(json.dumps({"query": query, "segments": segments}, ensure_ascii=False))


if __name__ == "__main__":
    main()
