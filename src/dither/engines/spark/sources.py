"""Opens the tables and files of a catalog in one Spark session.

Each table becomes a temporary view of its declared columns in their kinds (columns.py). So a question reaches what is declared
only. Nothing is written to Spark's catalog or storage.

The files behind a table are listed once, with sizes and times, and read from that list. Before each question they are listed
again (`unchanged`). A table without files, such as a view of another database, cannot be checked: `snapshot` in the catalog is
the curator's label for a version of it.

Reading is total. What Spark's readers reject (a damaged page, a timestamp or a decimal beyond its type) no expression can
guard, so every declared column is read in full when files are opened for the first time; verified.py remembers it.

Folders of Delta and Iceberg tables are refused as paths: files that were removed from such a table lie beside its own.

Views that draw random numbers, read the clock or cut off rows would give other rows to a repeated task. They are refused, as
far as Spark's plan shows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa

from dither.catalog.reading import AS_IS, LINES, TEXT_FILE, Read
from dither.catalog.values import Catalog, Key
from dither.engines.base import Constants, Progress
from dither.engines.opening import NOTHING, check_unique, completed, identifying, kinds_of, with_found
from dither.engines.spark.address import Place
from dither.engines.spark.columns import DIALECT, Reading, kind_of, read_column
from dither.engines.spark.dialect import SparkDialect
from dither.engines.spark.engine import Spark
from dither.engines.spark.session import connect, disconnect, quiet
from dither.engines.verified import Stats, Verified
from dither.errors import CatalogError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_T = TypeVar("_T")
_UNSTABLE = re.compile(
    r"\b(rand|randn|random|uniform|randstr|uuid|shuffle|monotonically_increasing_id|spark_partition_id|input_file_\w+|now"
    r"|current_(date|timestamp|user|time)|localtimestamp|reflect|java_method|try_reflect)\(|\b(Sample|GlobalLimit|LocalLimit|Limit)\b",
    re.IGNORECASE,
)
_FORMATS = {"Delta": "_delta_log/*.json", "Iceberg": "metadata/*.metadata.json"}  # what lies in the folder of a table
_FOLDERS = 500  # in one pattern
_SEEN = "dither_files"
_START = re.compile(r"[a-zA-Z0-9+.-]+:(//[^/]*)?/")
_ARROW = {
    "int": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


@dataclass(frozen=True)
class Stored:
    """A table as Spark has it: its frame, the type of each column, and its files, as far as they are known."""

    frame: DataFrame
    types: Mapping[str, str]
    files: tuple[str, ...] = ()

    @property
    def kinds(self) -> dict[str, str]:
        return {name: kind_of(type) for name, type in self.types.items()}


def schema(source: str, read: Read) -> dict[str, str]:
    """Returns the column names and kinds of a table. Reads no row."""
    _refuse_settings(read)
    place = Place.of(source)
    session = connect(place.spark)
    try:
        return _find(session, place).kinds
    finally:
        disconnect(session, place.spark)


def _refuse_settings(read: Read) -> None:
    given = [*read.given((*TEXT_FILE, *LINES)), *(["cells"] if read.cells != AS_IS else [])]
    if given:
        what = "Tables of Spark have no settings under read."
        raise CatalogError([(None, what, "leave them out; make a view that reads the text as it is meant.")])


def _asked(ask: Callable[[], _T]) -> _T | None:
    """Returns what Spark answers; None if it fails, because its message may quote a value."""
    with quiet(), suppress(Exception):
        return ask()
    return None


# --- tables and files -------------------------------------------------------------------------------------------


def _find(session: SparkSession, place: Place) -> Stored:
    """Returns a table, from its schema and its list of files only."""
    found = _asked(lambda: _files(session, place.name) if place.is_path else _table(session, place.name))
    if found is None:
        what = f"Spark cannot read {place.name}."
        fix = "look at the path as Spark sees it, and whether the files are Parquet." if place.is_path else "look at its name."
        raise CatalogError([(None, what, fix)])
    return found


def _files(session: SparkSession, path: str) -> Stored:
    """Reads Parquet files from a fixed list. Columns of the path (region=north/) are text, as in a CSV."""
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    listed = session.read.format("binaryFile").option("pathGlobFilter", "*.parquet").option("recursiveFileLookup", "true")
    files = tuple(sorted(str(row[0]) for row in listed.load(path).select("path").collect()))
    root = _root(path)
    reader = session.read.option("basePath", root) if not path.endswith(".parquet") or root != path else session.read
    frame = reader.parquet(*files)
    return Stored(frame, _types(frame), files)


def _root(path: str) -> str:
    """Returns the folder before the first wildcard, or the path."""
    return re.split(r"[*?\[{]", path)[0].rpartition("/")[0] if re.search(r"[*?\[{]", path) else path.rstrip("/")


def refuse_formats(session: SparkSession, path: str, files: Sequence[str]) -> None:
    """Refuses files of a table format, at any depth: which of them are the table is written elsewhere."""
    for folders in _above(files):
        for format, log in _FORMATS.items():
            found = _asked(lambda at=f"{folders}/{log}": session.read.format("binaryFile").load(at).schema)  # type: ignore[misc]
            if found is not None:
                what = f"{path} belongs to a table of {format}, and removed rows may lie in its files."
                raise CatalogError([(None, what, "store its rows as plain Parquet files, in a folder of their own.")])


def _above(files: Sequence[str]) -> list[str]:
    """Returns patterns of all folders that files are in, at any depth: many in each, because Spark is asked about each.

    >>> _above(["file:/a/y=1/b.parquet", "file:/a/y=2/c,d.parquet", "s3a://lake/a/b.parquet"])
    ['file:/{a,a/y=1,a/y=2}', 's3a://lake/{a}']
    """
    found: dict[str, set[str]] = {}
    for file in files:
        start = _START.match(file)
        place = "/" if start is None else start[0]
        folder = file.removeprefix(place)
        while folder := folder.rpartition("/")[0]:
            found.setdefault(place, set()).add(folder)
    named = {place: sorted(re.sub(r"([*?,\[\]{}\\])", r"\\\1", each) for each in own) for place, own in found.items()}
    return [
        f"{place}{{{','.join(own[start : start + _FOLDERS])}}}"
        for place, own in named.items()
        for start in range(0, len(own), _FOLDERS)
    ]


def _table(session: SparkSession, name: str) -> Stored:
    frame = session.table(name)
    return Stored(frame, _types(frame), tuple(sorted(frame.inputFiles())))


def _types(frame: DataFrame) -> dict[str, str]:
    return {column.name: column.dataType.simpleString() for column in frame.schema.fields}


def file_stats(session: SparkSession, files: Sequence[str]) -> Stats:
    """Returns path, size and time of change of files where Spark sees them; empty if one is missing."""
    if not files:
        return ()

    def ask() -> Stats:
        frame = session.read.format("binaryFile").load(list(files))
        rows = frame.selectExpr("path", "length", "unix_micros(CAST(modificationTime AS TIMESTAMP))").collect()
        return tuple(sorted((str(row[0]), 0, 0, int(row[1]), int(row[2]) * 1000, int(row[2]) * 1000) for row in rows))

    return _asked(ask) or ()


def refuse_unstable(session: SparkSession, name: str, place: Place) -> None:
    """Refuses a table whose rows may differ from one reading to the next."""
    plan = _asked(lambda: str(session.sql(f"EXPLAIN EXTENDED SELECT * FROM {place.name}").collect()[0][0]))
    logical = (plan or "").partition("== Optimized")[0]
    if plan is None or _UNSTABLE.search(logical):
        what = (
            f"{name} is a view whose rows are not the same each time they are read: it has a random number, a clock or a limit."
        )
        raise CatalogError([(None, what, "store its rows as a table, or leave that part out.")])


# --- opening ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opened:
    """An open catalog. `files`: those of each table, as Spark named them; `stats`: as they were when opened."""

    catalog: Catalog
    engine: Spark
    session: SparkSession
    spark: str
    places: Mapping[str, Place]
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stats: Mapping[str, Stats] = field(default_factory=dict)

    def unchanged(self) -> bool:
        """Whether the files are still as they were when opened. Tables without files are the curator's to watch."""
        return all(self._as_before(name, stats) for name, stats in self.stats.items() if stats)

    def _as_before(self, name: str, stats: Stats) -> bool:
        place, files = self.places[name], self.files[name]
        if not place.is_path:  # a table may be made of others by now, while its old files are still there
            fresh = _asked(lambda: _table(self.session, place.name).files)
            if fresh != files:
                return False
        return file_stats(self.session, files) == stats

    def close(self) -> None:
        """Closes the session. A Spark that dither started stops with its last session."""
        disconnect(self.session, self.spark)


def open_catalog(catalog: Catalog, progress: Progress | None = None) -> Opened:
    """Opens all tables in one session, or names every fault in one error. Its text depends on no row."""
    places = _places(catalog)
    spark = next(iter(places.values())).spark
    session = connect(spark)
    try:
        return _Opening(catalog, session, places).open(spark, progress)
    except BaseException:
        disconnect(session, spark)
        raise


def _places(catalog: Catalog) -> dict[str, Place]:
    """Returns where the tables are: all in one Spark."""
    places: dict[str, Place] = {}
    problems: list[tuple[int | None, str, Any]] = []
    for name, table in catalog.tables.items():
        if isinstance(table.source, Constants):
            continue
        try:
            _refuse_settings(table.read)
            places[name] = Place.of(table.source)
        except CatalogError as error:
            problems += [(line, f"{name}: {what}", fix) for line, what, fix in error.problems]
    if problems:
        raise CatalogError(problems)
    first, *others = places.items()
    for name, place in others:
        if place.spark != first[1].spark:
            what = f"{first[0]} and {name} are in different Sparks, and one question cannot ask both."
            raise CatalogError([(None, what, "name one Spark under [engine].")])
    return places


class _Opening:
    """One opening."""

    def __init__(self, catalog: Catalog, session: SparkSession, places: Mapping[str, Place]) -> None:
        self._catalog, self._session, self._places = catalog, session, places
        self._stored: dict[str, Stored] = {}
        self._verified = Verified(f"spark {session.version}", stats=partial(file_stats, session))
        names = {name: f"dither_view_{number}" for number, name in enumerate(catalog.tables)}
        self._dialect = SparkDialect(names)

    def open(self, spark: str, progress: Progress | None) -> Opened:
        self._stored = self._find_all()
        uploaded = {name: table.source for name, table in self._catalog.tables.items() if name not in self._places}
        schemas = {name: stored.kinds for name, stored in self._stored.items()}
        known = completed(self._catalog, schemas | {name: source.kinds for name, source in uploaded.items()})
        stats = {name: file_stats(self._session, stored.files) for name, stored in self._stored.items()}
        for name, source in uploaded.items():
            upload(self._session, self._dialect.view(name), source.kinds, source.rows)
        for name in self._stored:
            self._open(known, name)
        check_unique(known, self._doubled)
        tables = {name: with_found(table, partial(self._different, name)) for name, table in known.tables.items()}
        known = replace(known, tables=tables)
        engine = Spark(self._session, self._dialect, kinds_of(known), progress)
        files = {name: stored.files for name, stored in self._stored.items()}
        return Opened(known, engine, self._session, spark, self._places, files, stats)

    def _find_all(self) -> dict[str, Stored]:
        found: dict[str, Stored] = {}
        problems: list[tuple[int | None, str, Any]] = []
        for name, place in self._places.items():
            try:
                found[name] = _find(self._session, place)
                if place.is_path:
                    refuse_formats(self._session, place.name, found[name].files)
                else:
                    refuse_unstable(self._session, name, place)
            except CatalogError as error:
                problems += [(line, f"{name}: {what}", fix) for line, what, fix in error.problems]
        for name in found:
            problems += [
                (None, f"{name}.{column} has settings for text, and Spark's text is read as it is.", "leave them out.")
                for column, facts in self._catalog.tables[name].columns.items()
                if facts.cells != AS_IS
            ]
        if problems:
            raise CatalogError(problems)
        return found

    def _open(self, catalog: Catalog, name: str) -> None:
        """Makes the view of a table as questions see it, and reads every value, unless its files were read before.

        Most tables have no text that is too long or not UTF-8. If reading finds none, the view has no guards against them.
        """
        table, stored, exact = catalog.tables[name], self._stored[name], identifying(catalog, name)
        read = {
            column: read_column(column, stored.types[column], facts, exact=column in exact)
            for column, facts in table.columns.items()
        }
        text = repr(sorted(read.items()))
        if self._verified.holds(text, stored.files):
            self._view(name, read, guarded=False)
            return
        before = file_stats(self._session, stored.files)
        if self._places[name].is_path and len(stored.files) > 1:
            self._check_columns(name, list(read))
        fits = " AND ".join(reading.fits for reading in read.values() if reading.fits) or "TRUE"
        self._view(name, read, guarded=True)
        every = f"SELECT bit_xor(xxhash64(*)) FROM {self._dialect.table(name)}"
        self._must(name, lambda: self._session.sql(every).collect())
        misfits = self._must(name, lambda: stored.frame.where(f"NOT ({fits})").selectExpr("1").limit(1).collect())
        if not misfits:
            self._view(name, read, guarded=False)
            self._verified.remember(text, stored.files, before)

    def _check_columns(self, name: str, columns: Sequence[str]) -> None:
        """Refuses files of which one lacks a declared column: Spark would read NULL there without a word.

        It looks at the schema of those files only where a column is NULL in every row. Columns of the path are in no file.
        """
        held = [DIALECT.identifier(column) for column in columns]
        counts = ", ".join(f"count({each})" for each in held)

        def empty() -> list[tuple[str, list[str]]]:
            self._stored[name].frame.selectExpr("_metadata.file_path AS `file of a row`", *held).createOrReplaceTempView(_SEEN)
            rows = self._session.sql(f"SELECT `file of a row`, {counts} FROM {_SEEN} GROUP BY 1").collect()
            self._session.catalog.dropTempView(_SEEN)
            return [
                (unquote(str(file)), [column for column, number in zip(columns, found, strict=True) if number == 0])
                for file, *found in rows
            ]

        for file, missing in self._must(name, empty):
            if missing := [column for column in missing if f"/{column}=" not in file]:
                there = self._must(name, lambda file=file: self._session.read.parquet(file).columns)  # type: ignore[misc]
                if lacking := [column for column in missing if column not in there]:
                    what = f"{name}: its files differ in columns, and some lack {lacking[0]}."
                    raise CatalogError([(None, what, "write them with one schema.")])

    def _view(self, name: str, read: Mapping[str, Reading], *, guarded: bool) -> None:
        listed = [
            f"{reading.text if guarded or not reading.plain else reading.plain} AS {DIALECT.identifier(column)}"
            for column, reading in read.items()
        ]
        kept = " AND ".join(reading.keep for reading in read.values() if reading.keep and guarded)

        def make() -> bool:
            rows = self._stored[name].frame.where(kept) if kept else self._stored[name].frame
            rows.selectExpr(*listed or [f"CAST(NULL AS BIGINT) AS {DIALECT.identifier(NOTHING)}"]).createOrReplaceTempView(
                self._dialect.view(name)
            )
            return True

        self._must(name, make)

    def _must(self, name: str, ask: Callable[[], _T]) -> _T:
        found = _asked(ask)
        if found is None:
            raise CatalogError(
                [(None, f"{name} cannot be read.", "look whether its files are complete, and its view is sound.")]
            )
        return found

    def _doubled(self, name: str, column: str) -> int:
        """Returns how many values a column has more than once."""
        held = DIALECT.identifier(column)
        rows = f"SELECT 1 FROM {self._dialect.table(name)} WHERE {held} IS NOT NULL GROUP BY {held} HAVING count(*) > 1"
        counted = self._must(name, lambda: self._session.sql(f"SELECT count(*) FROM ({rows})").collect())
        return int(counted[0][0])

    def _different(self, name: str, column: str, most: int) -> list[Key]:
        text = f"SELECT DISTINCT {DIALECT.identifier(column)} FROM {self._dialect.table(name)} LIMIT {most}"
        found = self._must(name, lambda: self._session.sql(text).toArrow())
        return list(found.column(0).to_pylist())


def upload(session: SparkSession, name: str, kinds: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> None:
    """Makes a temporary view of constant rows."""
    kinds = dict(kinds) or {NOTHING: "int"}
    with quiet():
        if not rows:  # Spark Connect takes no empty table
            nulls = ", ".join(f"CAST(NULL AS {DIALECT.type(kind)}) AS {DIALECT.identifier(c)}" for c, kind in kinds.items())
            session.sql(f"SELECT {nulls} WHERE FALSE").createOrReplaceTempView(name)
            return
        columns = zip(*rows, strict=True) if rows[0] else [[None] * len(rows)]
        arrays = [pa.array(list(column), _ARROW[kind]) for column, kind in zip(columns, kinds.values(), strict=True)]
        session.createDataFrame(pa.table(arrays, names=list(kinds))).createOrReplaceTempView(name)
