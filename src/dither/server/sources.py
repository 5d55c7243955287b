"""Refuses a catalog whose sources are elsewhere than in its folder or the listed roots.

No request names a source: they come from the catalog file alone. But whoever may write that file should not be able to make
the server read /etc, or fetch an address inside the network.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from dither.catalog.file import read
from dither.errors import CatalogError, Fix, Python


def check_sources(catalog: Path, roots: Sequence[str]) -> None:
    """Refuses addresses, and files that are not below the catalog's folder or a root, links resolved."""
    allowed = [os.path.realpath(each) for each in (str(catalog.absolute().parent), *roots)]
    problems: list[tuple[int | None, str, str]] = []
    for name, table in read(catalog).tables.items():
        source = str(table.source)
        if "://" in source:
            problems.append(
                (None, f"The source of {name} is an address.", "a server reads files only: copy the data beside it.")
            )
        elif ".." in Path(source[len(_before_wildcards(source)) :]).parts or not all(
            _is_below(place, allowed) for place in _places(source)
        ):
            fix = Fix("move it there, or list its folder: {roots}.", roots=Python('roots = ["/data"] in [service]'))
            problems.append((None, f"The source of {name} is not in the catalog's folder.", fix))
    if problems:
        raise CatalogError(problems, name=catalog.name)


def _places(source: str) -> Iterator[str]:
    """Yields the files of a source, and the folder of a pattern: it may match other files later."""
    file = source.partition("#")[0]
    yield (
        os.path.realpath(os.path.dirname(glob.escape(file)) or os.curdir)
        if not glob.has_magic(file)
        else os.path.realpath(_before_wildcards(file) or os.curdir)
    )
    yield from (os.path.realpath(each) for each in glob.glob(file, recursive=True))
    if not glob.has_magic(file):
        yield os.path.realpath(file)
        if os.path.isdir(file):
            yield from (os.path.realpath(each) for each in glob.glob(os.path.join(file, "**"), recursive=True))


def _before_wildcards(pattern: str) -> str:
    """Returns the part of a pattern before its first wildcard, as a folder; all of it if there is none."""
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def _is_below(place: str, allowed: Sequence[str]) -> bool:
    return any(os.path.commonpath([place, root]) == root for root in allowed)
