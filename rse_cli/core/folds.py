"""Which cases are held out together: k parts, by document where there are enough of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rse_cli.core.cached_cases import Target

LEAST_GROUPS = 3
"""With two documents, each half would be tuned on one and judged on the other: that measures the documents."""


def split_folds(targets: Sequence[Target], k: int, seed: int) -> tuple[NDArray[np.int64], bool]:
    """Return the number of each case's fold, and whether cases of one document were kept together.

    Documents go to the fold with the fewest cases so far, the largest first; single cases are dealt out shuffled.

    Parameters
    ----------
    targets : sequence of Target
        Cases with the same `group` expect the same documents.
    k : int
        Folds, at least 2; fewer where there are fewer documents or cases.
    seed : int
        Of the shuffle.

    Examples
    --------
    >>> folds, by_document = split_folds([Target({}, group) for group in "aabc"], 3, 0)
    >>> folds.tolist(), by_document
    ([0, 0, 1, 2], True)
    """
    groups: dict[str, list[int]] = {}
    free = [at for at, one in enumerate(targets) if not one.group]
    for at, one in enumerate(targets):
        if one.group:
            groups.setdefault(one.group, []).append(at)
    largest = max(map(len, groups.values()), default=0)
    by_document = len(groups) >= LEAST_GROUPS and largest <= len(targets) / 2
    order = np.random.default_rng(seed).permutation(len(targets)).tolist()
    if by_document:
        packs = [*sorted(groups.values(), key=len, reverse=True), *([at] for at in order if at in set(free))]
        k = min(k, len(groups))
    else:
        packs = [[at] for at in order]
        k = min(k, len(targets))
    folds = np.zeros(len(targets), np.int64)
    sizes = [0] * k
    for pack in packs:
        fold = min(range(k), key=sizes.__getitem__)
        folds[pack] = fold
        sizes[fold] += len(pack)
    return folds, by_document


def name_groups(documents: Sequence[Sequence[str]]) -> list[str]:
    """Return a group for each case's expected documents: cases that share one, directly or through others, share it.

    Examples
    --------
    >>> name_groups([["a"], ["b", "a"], ["c"], []])
    ['a', 'a', 'c', '']
    """
    head: dict[str, str] = {}

    def find(name: str) -> str:
        while head.setdefault(name, name) != name:
            name = head[name]
        return name

    for ones in documents:
        for other in ones[1:]:
            low, high = sorted((find(ones[0]), find(other)))
            head[high] = low
    return [find(ones[0]) if ones else "" for ones in documents]
