"""A whole document on one line: its values as heights, and its segments underlined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rse_cli.cli.glyphs import Glyphs
from rse_cli.core.lexical import Floats


def draw_strip(
    levels: Floats, spans: Sequence[tuple[int, int]], highest: float, width: int, glyphs: Glyphs, floor: float = 0.0
) -> tuple[str, str]:
    """Return the heights of a document's values, and the line that underlines its segments.

    Parameters
    ----------
    levels : ndarray of shape (n_chunks,)
        Values, nan where a chunk has none.
    spans : sequence of (int, int)
        Half-open chunks of the segments.
    highest : float
        The value of the greatest height.
    width : int
        Most cells; one a chunk, or if there are more chunks one for several, with their greatest value.
    glyphs : Glyphs
        Signs.
    floor : float
        Values up to it have the least height.

    Examples
    --------
    >>> from rse_cli.cli.glyphs import UNICODE
    >>> draw_strip(np.array([np.nan, -1.0, 0.5, 1.0]), [(2, 4)], 1.0, 9, UNICODE)
    (' ▁▅█', '  ▔▔')
    >>> draw_strip(np.array([np.nan, -1.0, 0.5, 1.0]), [(2, 4)], 1.0, 2, UNICODE)
    ('▁█', ' ▔')
    """
    n = len(levels)
    cells = min(n, width)
    if not cells:
        return "", ""
    edges = np.arange(cells + 1, dtype=np.int64) * n // cells
    best = np.maximum.reduceat(np.where(np.isnan(levels), -np.inf, levels), edges[:-1])
    chosen = np.zeros(n, dtype=np.bool_)
    for start, end in spans:
        chosen[start:end] = True
    marked = np.logical_or.reduceat(chosen, edges[:-1])
    heights = "".join(_choose_height(value, floor, highest, glyphs.levels) for value in best.tolist())
    return heights.rstrip(), "".join(glyphs.under if one else " " for one in marked.tolist()).rstrip()


def _choose_height(value: float, floor: float, highest: float, signs: str) -> str:
    if value == -np.inf:
        return " "
    if value <= floor or highest <= floor:
        return signs[0]
    share = min(1.0, (value - floor) / (highest - floor))
    # From the least height above the floor to the full one.
    return signs[1 + round(share * (len(signs) - 2))]
