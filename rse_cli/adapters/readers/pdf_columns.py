"""Which fragments of a page form columns of prose, and in which order they are read. Pure.

A table has its label on the left and numbers on the right and must be read row by row; prose in columns must be
read column by column. Both leave a white gutter, so the gutter alone decides nothing: a column has text that
begins at its edge line after line and fills its width.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, pairwise

from rse_cli.adapters.readers.pdf_lines import Fragment, group_rows, is_amount, is_numeric

_EDGE = 3.0
"""Points by which the left edges of one column's lines may differ: rounding and optical alignment."""

_Row = Sequence[Fragment]

_MAX_DEPTH = 3
"""Each cut makes two columns, so this allows eight: more than any page of prose has."""


def order_regions(
    fragments: Sequence[Fragment], gutter: float | None, known: Sequence[float] = (), depth: int = _MAX_DEPTH
) -> list[list[Fragment]]:
    """Cut a page into regions without columns, in reading order.

    Parameters
    ----------
    fragments : sequence of Fragment
        All text of one page in one direction.
    gutter : float or None
        What `find_gutter` says of it.
    known : sequence of float
        Gutters of other pages, tried where the page has none: a last page may have two lines in its right column.
    depth : int
        How many more times a region may be cut.

    Returns
    -------
    list of list of Fragment
        Every fragment once; full-width text stands between the columns above and below it.
    """
    rows = group_rows(fragments)
    bands: list[tuple[bool, list[_Row]]] = []
    for edge in [gutter] if gutter is not None else known:
        bands = [(fits and _may_be_columns(*_part_at(band, edge)), band) for fits, band in _cut_bands(rows, edge)]
        if any(fits for fits, _ in bands):
            break
    else:
        return [list(fragments)] if fragments else []
    regions: list[list[Fragment]] = []
    across: list[Fragment] = []
    for fits, band in bands:
        if not fits:
            across += _flatten(band)
            continue
        regions += [across] if across else []
        across = []
        for side in map(_flatten, _part_at(band, edge)):
            regions += order_regions(side, find_gutter(side) if depth else None, known if depth else (), depth - 1)
    return [*regions, across] if across else regions


def _flatten(rows: Sequence[_Row]) -> list[Fragment]:
    return [fragment for row in rows for fragment in row]


def find_known_gutters(gutters: Sequence[float | None]) -> list[float]:
    """Return the gutters that at least three pages share, the most frequent first."""
    counts = Counter(round(gutter / _EDGE) for gutter in gutters if gutter is not None)
    first = {round(gutter / _EDGE): gutter for gutter in gutters if gutter is not None}
    return [first[key] for key, count in counts.most_common(4) if count >= 3]


def _part_at(rows: Sequence[_Row], edge: float) -> tuple[list[_Row], list[_Row]]:
    """Part every row at `edge`; sides without text are left out."""
    left = [[f for f in row if f.x0 < edge - _EDGE] for row in rows]
    right = [[f for f in row if f.x0 >= edge - _EDGE] for row in rows]
    return [row for row in left if row], [row for row in right if row]


def find_gutter(fragments: Sequence[Fragment]) -> float | None:
    """Find the left edge of a column of prose that has another column to its left.

    Returns
    -------
    float or None
        The edge that puts most lines of prose into columns, None if no edge makes columns.
    """
    wordy = [f.x0 for f in fragments if _is_wordy(f)]
    if len(wordy) < 6:
        return None
    rows = group_rows(fragments)
    leftmost = min(f.x0 for f in fragments)
    gains = {edge: _measure_gain(rows, edge) for edge in _find_edges(wordy, leftmost)}
    best = max(gains, key=lambda edge: gains[edge], default=None)
    if best is not None and gains[best]:
        return best
    # Text that is set around a small table: labels of one or two words begin at its edge.
    labels = [f.x0 for row in rows for f, after in pairwise(row) if not is_amount(f.text) and is_amount(after.text)]
    return next((edge for edge in _find_edges(labels, leftmost) if _measure_gain(rows, edge, beside_table=True)), None)


def _find_edges(starts: Sequence[float], leftmost: float) -> list[float]:
    """Return the left edges that at least three of `starts` share, the most frequent first."""
    clusters: list[list[float]] = []
    for x in sorted(starts):
        if clusters and x - clusters[-1][0] <= _EDGE:
            clusters[-1].append(x)
        else:
            clusters.append([x])
    edges = [cluster[0] for cluster in sorted(clusters, key=len, reverse=True)[:8] if len(cluster) >= 3]
    return [edge for edge in edges if edge - leftmost >= 40]  # points: no column is narrower than half an inch


def _measure_gain(rows: Sequence[_Row], edge: float, beside_table: bool = False) -> int:
    """Count the lines that stand side by side when `rows` are parted at `edge`; 0 if they read as no columns."""
    gain = 0
    for columnar, band in _cut_bands(rows, edge):
        left, right = _part_at(band, edge)
        if columnar and (_is_set_around(left, right) if beside_table else _are_columns(left, right)):
            gain += min(len(left), len(right))
    return gain


def _is_wordy(fragment: Fragment) -> bool:
    words, numbers = _count_words(fragment.text)
    return words >= 3 and numbers <= 0.3 * words


@lru_cache(maxsize=4096)  # each fragment is asked about for every gutter that is tried
def _count_words(text: str) -> tuple[int, int]:
    words = text.split()
    return len(words), sum(map(is_numeric, words))


def _cut_bands(rows: Sequence[_Row], edge: float) -> list[tuple[bool, list[_Row]]]:
    """Cut rows into maximal bands that may be columns parted at `edge` (True) and those that may not."""
    kinds = _settle([_classify(row, edge) for row in rows], rows)
    bands = []
    for columnar, group in groupby(zip(kinds, rows, strict=True), key=lambda pair: pair[0]):
        bands.append((columnar, [row for _, row in group]))
    return bands


def _classify(row: Sequence[Fragment], edge: float) -> bool | None:
    """Say whether a row fits columns parted at `edge` (True), contradicts them (False), or neither (None)."""
    left = [f for f in row if f.x0 < edge - _EDGE]
    right = [f for f in row if f.x0 >= edge - _EDGE]
    if any(f.x1 > edge - 0.4 * f.size for f in left):
        return False
    if not right:
        return None
    first = right[0]
    aligned = abs(first.x0 - edge) <= _EDGE
    indented = first.x0 - edge < 4 * first.size and _is_wordy(first)
    if indented or (aligned and not is_amount(first.text)):
        return True
    # Numbers away from the edge belong to the label on their left, unless that is a full line of prose.
    full = any(_is_wordy(f) and f.x1 - f.x0 >= 0.8 * (edge - f.x0) for f in left)
    return None if aligned or full or not left else False


def _settle(kinds: Sequence[bool | None], rows: Sequence[_Row]) -> list[bool]:
    """Let undecided rows follow their neighbours; between two that differ, cut at the widest gap."""
    settled = list(kinds)
    known = [-1, *(i for i, kind in enumerate(kinds) if kind is not None), len(kinds)]
    for a, b in pairwise(known):
        above = kinds[a] if a >= 0 else None
        below = kinds[b] if b < len(kinds) else None
        above, below = (below if above is None else above), (above if below is None else below)
        cut = a + 1
        if above != below:
            # Where all gaps are alike, a short line is the end of what stands above it.
            gaps = {i: round(rows[i][0].baseline - rows[i - 1][0].baseline) for i in range(a + 1, b + 1)}
            cut = max(gaps, key=lambda i: (gaps[i], i))
        for i in range(a + 1, b):
            settled[i] = above if above == below or i < cut else below
    return [bool(kind) for kind in settled]


def _are_columns(left: Sequence[_Row], right: Sequence[_Row]) -> bool:
    """Say whether both sides read as columns: prose on both, or prose beside a table of its own."""
    (prose_l, share_l), (prose_r, share_r) = _measure_prose(left), _measure_prose(right)
    fit = (
        (min(prose_l, prose_r) >= 3 and min(share_l, share_r) >= 0.35)
        # Beside a table the prose must be plainly a column: labels of a table with text columns are ragged.
        or (prose_l >= 5 and share_l >= 0.6 and _count_own_rows(right) >= 3)
        or (prose_r >= 5 and share_r >= 0.6 and _count_own_rows(left) >= 3)
    )
    return fit and not _begin_together(left, right)


def _may_be_columns(left: Sequence[_Row], right: Sequence[_Row]) -> bool:
    """Say whether both sides read as columns, however short, given that the gutter is known."""
    measures = _measure_prose(left), _measure_prose(right)
    if all(lines >= 1 and share >= 0.35 for lines, share in measures):
        return not _begin_together(left, right)
    return _are_columns(left, right) or _is_set_around(left, right)


def _begin_together(left: Sequence[_Row], right: Sequence[_Row]) -> bool:
    """Say whether both sides are cells of table rows: after gaps, lines begin at one height again and again."""
    if min(len(left), len(right)) < 4:
        return False
    tops = [[row[0].baseline for row in side] for side in (left, right)]
    steps = [b - a for side in tops for a, b in pairwise(side) if b - a > 0.8 * left[0][0].size]
    least = 1.25 * min(steps, default=0.0)
    begins = [{round(b / _EDGE) for a, b in pairwise(side) if b - a > least} for side in tops]
    shared = sum(bool({at - 1, at, at + 1} & begins[1]) for at in begins[0])
    return shared >= 3 and shared >= 0.8 * max(map(len, begins))


def _measure_prose(side: Sequence[_Row]) -> tuple[int, float]:
    """Count the lines of at least four words that fill two thirds of the side's width, and their share."""
    if not side:
        return 0, 0.0
    width = max(row[-1].x1 for row in side) - min(row[0].x0 for row in side)
    edges = _find_cell_edges(side)
    full = 0
    for row in side:
        if edges and any(round(f.x0 / _EDGE) in edges for f in row[1:]):
            continue
        counts = [_count_words(f.text) for f in row]
        words, numbers = sum(count[0] for count in counts), sum(count[1] for count in counts)
        if words >= 4 and numbers <= 0.3 * words and row[-1].x1 - row[0].x0 >= 0.67 * width:
            full += len(row) <= 2 or max(b.x0 - a.x1 for a, b in pairwise(row)) < 3 * row[0].size
    return full, full / len(side)


def _find_cell_edges(side: Sequence[_Row]) -> set[int]:
    """Find where cells of a table begin, in steps of `_EDGE`: an edge inside several lines with few words after it."""
    starts: dict[int, list[bool]] = {}
    for row in side:
        for fragment in row[1:]:
            starts.setdefault(round(fragment.x0 / _EDGE), []).append(_is_wordy(fragment))
    least = max(3, 0.2 * len(side))
    return {edge for edge, wordy in starts.items() if len(wordy) >= least and sum(wordy) < 0.5 * len(wordy)}


def _is_set_around(left: Sequence[_Row], right: Sequence[_Row]) -> bool:
    """Say whether `left` is prose beside a table of its own.

    Most lines of prose go on with a sentence, unlike labels of a table, which begin with capitals.
    """
    lines, share = _measure_prose(left)
    flows = sum(row[0].text[0].islower() for row in left) >= 0.5 * len(left)
    return lines >= 3 and share >= 0.6 and flows and _count_own_rows(right) >= 3


def _count_own_rows(side: Sequence[_Row]) -> int:
    """Count table rows that lie wholly on one side: a label at its edge, numbers after it."""
    start = min((row[0].x0 for row in side), default=0.0)
    return sum(
        len(row) >= 2
        and row[0].x0 - start < 3 * row[0].size
        and any(map(str.isalpha, row[0].text))
        and is_numeric(row[-1].text.rsplit(" ", 1)[-1])
        for row in side
    )
