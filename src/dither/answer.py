"""The results of a question: `Quote` (price and expected margins) and `Answer` (noisy values, margins, price, receipt)."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from dataclasses import field as stored
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from os import PathLike
from typing import Any

from dither.charts.chart import Chart, chart_of
from dither.display import show_margins, show_notes, show_picture, show_table
from dither.errors import DitherError, extra
from dither.exact.numbers import Number, between, flag, show, show_percent
from dither.export import excel, latex, markdown
from dither.ledger.receipts import Receipt
from dither.offered import Offered, finite
from dither.planning.consistent import consistent_margins, consistent_table
from dither.planning.left_out import LeftOut, sentences
from dither.planning.outer import counts_every_group, opened
from dither.planning.outputs import (
    Noisy,
    Table,
    Value,
    explain,
    least,
    listed_words,
    margins,
    may_be_empty,
    passed_on,
    predicted_margins,
    ranks,
    unshown,
)
from dither.planning.plan import Field, Plan
from dither.planning.price import Price
from dither.planning.program import Batch
from dither.planning.releases.keys import key_names
from dither.query.functions.base import double
from dither.text import did_you_mean

COUNTS = "each person counts "


@dataclass(frozen=True, repr=False)
class Quote:
    """The price of a question and the margins to expect. It reads no row and charges nothing."""

    program: Batch
    confidence: Fraction
    total: Price  # of everything that would be charged
    refusal: str = ""  # why the budget would refuse it now
    again: int | None = None  # the entry of the stored answer that asking would return for free
    counted: bool = False  # the stored answer would count in the analyst's quota, who has not seen it yet
    further: tuple[tuple[str, str], ...] = ()  # lines about what is done besides the plan
    free: Offered | None = stored(default=None, kw_only=True)  # what earlier answers give for nothing
    waits: str = stored(default="", kw_only=True)  # why it would wait for a curator's approval
    portion: str = stored(default="", kw_only=True)  # its part of a price that several tables share

    @property
    def plan(self) -> Plan:
        """The plan of the answer."""
        return self.program.plans[0]

    @property
    def assumed_rows(self) -> int | None:
        return self.program.rows

    @property
    def price(self) -> str:
        """The price, as text."""
        return str(self.total)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that would be charged."""
        return self.total.epsilon

    @property
    def delta(self) -> Fraction:
        return self.total.delta

    def explain(self) -> str:
        """Shows the plan."""
        further = (*self.further, *left_out_lines(self.program))
        return explain(self.plan, self.confidence, self.assumed_rows, self.portion or self.total, further)

    @property
    def schema(self) -> tuple[Field, ...]:
        """The name and kind of each column of the answer."""
        return self.plan.schema

    def margins(self) -> dict[str, float | None]:
        """Returns the predicted margin of each noisy output; None if it depends on rows that were not assumed, or on values.

        For a variance or a standard deviation it is a typical margin: the real one depends on the values.
        """
        return predicted_margins(self.plan, self.assumed_rows, self.confidence)

    def as_data(self) -> dict[str, Any]:
        """Returns the fields that `to_json` writes."""
        return {
            "columns": [field.name for field in self.schema],
            "kinds": [field.kind for field in self.schema],
            "margins": {name: finite(margin) for name, margin in self.margins().items()},
            "ranks": ranks(self.plan, self.confidence),
            "confidence": str(self.confidence),
            "assumed_rows": self.assumed_rows,
            "sample": sample_text(self.plan),
            "price": {"epsilon": str(self.epsilon), "delta": str(self.delta)},
            "refused": self.refusal or None,
            "waits": self.waits or None,
            "entry": self.again,
            "left_out": {"epsilon": str(_reserved(self.program)), "for": [part.words for part in self.program.cuts.parts]},
            "free": None if self.free is None else self.free.as_data(),
            "plan": self.explain(),
        }

    def to_json(self) -> str:
        """Returns JSON: columns, margins to expect, price, and what asking now would do. `refused`: why it would be refused;
        `waits`: why it would wait for a curator; `entry`: the entry of the stored answer that would be returned. Prices are
        exact rationals as text."""
        return json.dumps(self.as_data(), ensure_ascii=False, indent=2, allow_nan=False)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return show_margins(self.price, self.margins(), self.refusal, str(self))

    def __str__(self) -> str:
        text = "\n".join([self.explain(), *self._offered()])
        if self.refusal:
            return f"{text}\nasked now      it would be refused: {self.refusal}"
        if self.again is None:
            return text
        counts = "; its price counts in the quota of an analyst who has not seen it" if self.counted else ""
        return f"{text}\nasked now      it is the answer of entry {self.again} again: charged nothing{counts}"

    def _offered(self) -> list[str]:
        """Returns the lines on what earlier answers give."""
        lines = [] if self.free is None else self.free.words(self.margins(), self.price)
        return [f"{'' if place else 'earlier':<14} {line}" for place, line in enumerate(lines)]


@dataclass(frozen=True)
class Answer:
    """A noisy table with margins and a receipt. Everything in it is public: using it costs nothing more.

    `receipt`: an auditor can check it (a list of public values has none); `replayed`: it is the stored answer of an earlier,
    equal question.
    """

    program: Batch
    released: tuple[Noisy, ...]
    table: Table
    confidence: Fraction
    issued: Receipt | None  # None: a list of public values, which has no price and no entry
    total: Price  # of the whole release
    replayed: bool = False
    left: Callable[[], str] = stored(default=str, compare=False)  # what was left of the budget after the charge
    chosen: str = ""  # the bounds that were chosen for it, in words
    is_consistent: bool = stored(default=False, kw_only=True)  # its counts were made consistent

    @property
    def plan(self) -> Plan:
        return self.program.plans[0]

    def consistent(self) -> Answer:
        """Returns the answer with whole counts that are never negative and add up to the same total. Free.

        COUNT(*) of the groups is the nearest such table; other counts lie between 0 and it. Sums, means and quantiles stay. The
        margins of moved counts are wider, so that they still hold; what is computed from counts has none.
        """
        return replace(self, table=consistent_table(self.plan, self.noisy), is_consistent=True)

    @property
    def receipt(self) -> Receipt:
        """The signed proof of the question and its price."""
        if self.issued is None:
            what = "A list of public values has no receipt: it reads no private row, and has no price."
            raise DitherError(what, fix="use the list as it is.")
        return self.issued

    @property
    def noisy(self) -> Noisy:
        """The noisy numbers of the answer."""
        return self.released[0]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.table.columns

    @property
    def rows(self) -> tuple[tuple[Value, ...], ...]:
        return self.table.rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> list[Value]:
        """Returns the values of one column, in the order of the rows."""
        if not isinstance(column, str) or column not in self.columns:
            near = did_you_mean(column, self.columns) if isinstance(column, str) else ""
            raise DitherError("The answer has no such column.", fix=f"{near}take one of: {', '.join(self.columns)}.")
        place = self.columns.index(column)
        return [row[place] for row in self.rows]

    def margins(self, confidence: Number | None = None) -> dict[str, list[float | None]]:
        """Returns a margin per row for each noisy column: value ± margin holds the bounded truth with at least this confidence.

        Sums, differences and quotients of noisy numbers have margins from their joint distribution, other arithmetic by
        intervals. None if no margin can be stated, as for LN of a difference. The margin of a quantile is released with it and
        holds with 99 %; at a higher confidence it is what the bounds allow. See also `ranks`.
        """
        level = self.at_confidence(confidence)
        wide = self._margins if level == self.confidence else margins(self.plan, self.noisy, self.table, level)
        wide = {name: list(each) for name, each in wide.items()}
        return consistent_margins(self.plan, self.noisy, self.table, wide, level) if self.is_consistent else wide

    @cached_property
    def _margins(self) -> dict[str, list[float | None]]:
        """The margins at the answer's own confidence: several forms of an answer need them."""
        return margins(self.plan, self.noisy, self.table, self.confidence)

    def ranks(self, confidence: Number | None = None) -> dict[str, float]:
        """Returns how many rows' worth the rank of each quantile column may be off."""
        return ranks(self.plan, self.at_confidence(confidence))

    def may_be_empty(self) -> dict[str, list[bool]]:
        """Returns for each noisy column whether the group of a row may be too small: a mean of no rows is undefined."""
        return may_be_empty(self.plan, self.noisy, self.table, self.confidence)

    @cached_property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What the bounds left out, with intervals at the answer's confidence; empty if they can leave nothing out, or if the
        question or the catalog turned the estimate off."""
        return self.program.left_out(self.released, self.confidence)

    def at_confidence(self, confidence: Number | None) -> Fraction:
        """Returns a confidence, checked; by default that of the answer."""
        if confidence is None:
            return self.confidence
        return between(confidence, "confidence", 0, 1, open_low=True, open_high=True)

    @property
    def price(self) -> str:
        """The price of the release, as text."""
        return str(self.total)

    def explain(self) -> str:
        """Shows the plan behind the answer."""
        further = (("bounds", self.chosen),) if self.chosen else ()
        return explain(self.plan, self.confidence, None, self.total, (*further, *left_out_lines(self.program)))

    # --- for people ---------------------------------------------------------------------------------------------

    def cells(self) -> list[list[str]]:
        """Shows every cell, with its margin."""
        wide, ranked = self.margins(), self.ranks()
        empty = self.may_be_empty()
        cells = []
        for i, row in enumerate(self.rows):
            texts = []
            for name, value in zip(self.columns, row, strict=True):
                margin = wide[name][i] if name in wide else None
                unknown = name in wide and name not in ranked and margin is None and _is_number(value)
                text = _unsure(value) if unknown else _number(value, margin)
                texts.append(f"{text} ?" if margin is not None and empty[name][i] else text)
            cells.append(texts)
        return cells

    @property
    def warning(self) -> str:
        """What to read before the numbers: that noise hides how much was left out within chosen bounds, or that it seems to be
        most of it; empty if neither."""
        reasons, bounds = self._far_off()
        if not reasons:
            return ""
        by_name = {name: [str(bound) for other, bound in bounds if other == name] for name, _ in bounds}
        chosen = " and ".join(f"{name} = {' or '.join(each)}" for name, each in by_name.items())
        return (
            f"these numbers may be far off, whatever ± says: {reasons[0]}, and the "
            f"bounds were chosen under the same noise ({chosen}). Name the bounds, or spend more"
        )

    def _far_off(self) -> tuple[list[str], list[tuple[str, int]]]:
        """Returns why the numbers may be far off, and the bounds that were chosen; nothing if they were named."""
        chosen = list(self.program.cuts.chosen)
        rows = [each for each in self.left_out if not each.clipped]
        hidden = [f"noise hides how many {each.of} were left out" for each in rows if each.hidden]
        most = [f"most {each.of} seem to be left out" for each in rows if each.most]
        return ([*hidden, *most], chosen) if chosen and (hidden or most) else ([], [])

    def notes(self) -> list[str]:
        """Returns what to know about the table, what matters most first: a warning, why it is empty, what was left out,
        which numbers are doubtful, what margins do not include, and last the confidence, the price and what is left."""
        if self.issued is None:
            return [listed_words(self.plan)]
        seen = sentences([each for each in self.left_out if each.seen])
        said = [each for each in self.left_out if not (self.warning and each.hidden and not each.seen and not each.clipped)]
        hidden = [each for each in sentences(said) if each not in seen]
        notes = [
            *self._warnings(),
            *self._empty(),
            *self._counted(),
            *self.plan.query.unlisted,
            *seen,
            *self._doubts(),
            *self._hidden(),
        ]
        notes += [f"{name}: {self._quantile(name)}rank ± {rank:.0f} rows" for name, rank in self.ranks().items()]
        notes += self._unshown()
        notes += [self.chosen] if self.chosen else []
        notes += ["counts were made whole, not negative and adding up; ± includes it"] if self.is_consistent else []
        notes += ["; ".join(hidden)] if hidden else []
        if (sample := self.plan.sample) is not None:
            notes.append(f"estimated from a secret sample: each person was in it with probability {sample.q}; ± includes it")
        if constant := self._not_included():
            notes.append(f"not included in ±: {', '.join(constant)}")
        left = self.left()
        return [
            *dict.fromkeys(notes),
            "; ".join([self._stated(), self._charged(), *([left] if left else [])]),
        ]

    def _stated(self) -> str:
        """Says how often margins hold."""
        return f"± at {show_percent(self.confidence)} confidence"

    def footer(self) -> str:
        """Shows the notes, one in each line."""
        return "\n".join(self.notes())

    def _empty(self) -> list[str]:
        """Says why the table has no row."""
        if self.rows:
            return []
        if self.noisy.keys:
            return ["no row is left after HAVING, LIMIT and OFFSET: the answer has groups"]
        rule = self.plan.threshold
        if rule is None:
            return ["there is no group to show"]
        keys = key_names(self.plan.query.keys)
        return [
            f"no group is shown: a group of about {self.plan.people_shown} people is needed. Ask at a higher price, group by "
            f"fewer or coarser keys, or let the curator declare the values of {keys}: then all are shown"
        ]

    def _counted(self) -> list[str]:
        """Says that groups without anybody are counted, where a SELECT around them counts or averages groups."""
        query = self.plan.query
        if not query.above or not query.keys:
            return []
        names = [each.name for each in query.outputs]
        table = opened(query, self.plan.threshold is not None)
        return [COUNTED] if counts_every_group(query.above, names, table) else []

    def _not_included(self) -> list[str]:
        """Returns what the margins never include, without what cannot happen."""
        cuts, texts = self.program.cuts, list(self.plan.margin_notes)
        texts += [f"{COUNTS}{self.plan.bounding}"] if self.plan.work.by_unit and cuts.rows else []
        texts += [f"rows with other values of {' or '.join(cuts.keys)}"] if cuts.keys else []
        return texts

    def _hidden(self) -> list[str]:
        """Says that small groups are hidden where keys are found in the data."""
        rule = self.plan.threshold
        return (
            []
            if rule is None or not self.rows
            else [f"groups of fewer than about {self.plan.people_shown} people are not shown"]
        )

    def _unshown(self) -> list[str]:
        """Names what is paid for and in no column."""
        titles = [each.title for each in unshown(self.plan)]
        return [f"paid for, but not shown: {', '.join(titles)}"] if titles else []

    def _doubts(self) -> list[str]:
        """Explains `± ?` and `?` behind a margin, where the table has them."""
        ranked, wide = self.ranks(), self.margins()
        unstated = ((name, i) for name in wide if name not in ranked for i, margin in enumerate(wide[name]) if margin is None)
        notes = ["± ?: no margin can be stated"] if any(_is_number(self[name][i]) for name, i in unstated) else []
        empty = self.may_be_empty()
        return [*notes, *(["?: the group may be empty"] if any(any(each) for each in empty.values()) else [])]

    def _charged(self) -> str:
        if not self.replayed:
            return f"charged {self.price}{least(self.plan)}"
        return f"this is the answer of entry {self.receipt.body['entry']['number']}, given again: charged nothing"

    def __repr__(self) -> str:
        return str(self)

    def _quantile(self, column: str) -> str:
        """Shows which quantile a column has and the step of its grid, where the question does not say so."""
        notes = (
            reading.notes for name, output in passed_on(self.plan).items() if name == column for reading in output.readings
        )
        return "".join(f"{note}, " for note in next(notes, ()))

    def __str__(self) -> str:
        body = [list(self.columns), *self.cells()]
        widths = [max(len(row[i]) for row in body) for i in range(len(self.columns))]
        numeric = self._right()
        lines = [
            "  ".join(text.rjust(w) if right else text.ljust(w) for text, w, right in zip(row, widths, numeric, strict=True))
            for row in body
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([*(line.rstrip() for line in lines), self.footer()])

    def _warnings(self) -> list[str]:
        return [self.warning] if self.warning else []

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """Returns an HTML table with margins, the notes below it, and a chart if matplotlib is installed."""
        table, warned = show_table(self.columns, self.cells(), self._right()), self._warnings()
        notes = show_notes(warned, (each for each in self.notes() if each not in warned))
        return (
            table + notes + (show_picture(self.plot, "the numbers of the table, with their margins") if len(self) > 1 else "")
        )

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """Draws the noisy columns with error bars: a panel each, or one for each value of a second key; dates and many numbers
        along an axis; and what was left out. Returns a matplotlib Figure, and saves it to `path`."""
        from dither.charts.figure import draw_figure  # matplotlib is an extra

        return draw_figure(self.chart(), path)

    def chart(self) -> Chart:
        """Describes the picture that `plot` draws: its panels, points, margins and axes."""
        return chart_of(self.as_data() | {"notes": self.notes(), "cells": self.cells()})

    # --- for programs -------------------------------------------------------------------------------------------

    @property
    def schema(self) -> tuple[Field, ...]:
        """The name and kind of each column. They follow from the plan, so all its answers have the same."""
        return self.plan.schema

    def to_dict(self, *, margins: bool = False) -> dict[str, list[Value]]:
        """Returns columns of plain Python values. With `margins`, the margins of a noisy column `n` follow as `n_margin`, with
        underscores added if that name is taken. CSV and Parquet files of the command line have the same columns."""
        return {field.name: values for field, values in self._typed(margins)}

    def as_data(self) -> dict[str, Any]:
        """Returns the fields that `to_json` writes."""
        epsilon, delta = str(self.total.epsilon), str(self.total.delta)
        columns = [[_json(value) for value in values] for _, values in self._typed(False)]
        return {
            "columns": list(self.columns),
            "kinds": [field.kind for field in self.schema],
            "rows": [list(row) for row in zip(*columns, strict=True)],
            "margins": {name: [_json(value) for value in each] for name, each in self.margins().items()},
            "ranks": self.ranks(),
            "left_out": [each.as_data() for each in self.left_out],
            "chosen": self.chosen or None,
            "warning": self.warning or None,
            "confidence": str(self.confidence),
            "sample": sample_text(self.plan),
            "price": {"epsilon": epsilon, "delta": delta},
            "charged": {"epsilon": "0", "delta": "0"} if self.replayed else {"epsilon": epsilon, "delta": delta},
            "replayed": self.replayed,
            "made_of": [],
            "nominal": False,
            "receipt": None if self.issued is None else self.issued.as_data(),
        }

    def to_json(self) -> str:
        """Returns JSON: values, margins, price and receipt. Dates are ISO text, prices exact rationals as text."""
        return json.dumps(self.as_data(), ensure_ascii=False, indent=2, allow_nan=False)

    def to_markdown(self) -> str:
        """Returns a Markdown table with margins, and the notes below it."""
        return markdown(self.columns, self.cells(), self._right(), self.notes())

    def to_latex(self) -> str:
        """Returns a LaTeX table with margins, and the notes below it. It needs no package."""
        return latex(self.columns, self.cells(), self._right(), self.notes())

    def to_excel(self, path: str | PathLike[str]) -> None:
        """Writes an Excel workbook: numbers with their margins beside them, and a sheet with the question, the price and the
        notes. Refuses a file that is there already."""
        content = self.excel()
        try:
            with open(path, "xb") as out:
                out.write(content)
        except FileExistsError:
            raise DitherError(f"{path} is there already.", fix="name a new file.", charged=_KEPT) from None
        except OSError:
            raise DitherError(
                f"{path} cannot be written.", fix="name a file in a folder that is there.", charged=_KEPT
            ) from None

    def excel(self) -> bytes:
        """Returns the content of the file that `to_excel` writes."""
        asked = [] if self.issued is None else [("question", str(self.issued.body["question"]))]
        entry = [] if self.issued is None else [("entry", str(each["number"])) for each in self.issued.answers]
        facts = [*asked, ("price", self.price), *entry, *(("note", note) for note in self.notes())]
        return excel([(field.name, field.kind, values) for field, values in self._typed(True)], facts)

    def _right(self) -> list[bool]:
        """Returns which columns stand on the right: those of numbers."""
        return [_numeric(self.rows, place) for place in range(len(self.columns))]

    def to_pandas(self, *, margins: bool = False) -> Any:
        """Returns a pandas frame; `margins` as in `to_dict`, NaN where there is none."""
        pandas, columns = _library("pandas"), self._in_64_bits(margins)
        text = pandas.Series(["text"]).dtype  # depends on the version of pandas
        return pandas.DataFrame({field.name: pandas.Series(values, dtype=_pandas(field, text)) for field, values in columns})

    def to_polars(self, *, margins: bool = False) -> Any:
        """Returns a Polars frame; `margins` as in `to_dict`."""
        polars, columns = _library("polars"), self._in_64_bits(margins)
        kinds = {
            "int": polars.Int64,
            "real": polars.Float64,
            "text": polars.String,
            "bool": polars.Boolean,
            "date": polars.Date,
            "timestamp": polars.Datetime("us"),
        }
        return polars.DataFrame([polars.Series(field.name, values, kinds[field.kind]) for field, values in columns])

    def to_arrow(self, *, margins: bool = False) -> Any:
        """Returns an Arrow table; `margins` as in `to_dict`."""
        arrow, columns = import_module("pyarrow"), self._in_64_bits(margins)
        kinds = {
            "int": arrow.int64(),
            "real": arrow.float64(),
            "text": arrow.string(),
            "bool": arrow.bool_(),
            "date": arrow.date32(),
            "timestamp": arrow.timestamp("us"),
        }
        return arrow.table({field.name: arrow.array(values, kinds[field.kind]) for field, values in columns})

    def _typed(self, margins: bool) -> list[tuple[Field, list[Any]]]:
        """Returns each column with its values in its kind: a real column has floats only."""
        wide = self.margins() if flag(margins, "margins") else {}
        taken = set(self.columns)
        columns: list[tuple[Field, list[Any]]] = []
        for field in self.schema:
            values = self[field.name]
            columns.append((field, [_double(value) for value in values] if field.kind == "real" else values))
            if field.name in wide:
                label = f"{field.name}_margin"
                while label in taken:
                    label += "_"
                taken.add(label)
                columns.append((Field(label, "real"), list(wide[field.name])))
        return columns

    def _in_64_bits(self, margins: bool) -> list[tuple[Field, list[Any]]]:
        """Returns the columns for libraries with 64-bit integers: whole numbers that may be larger become floats."""
        columns = []
        for field, values in self._typed(margins):
            if field.kind == "int" and not field.long and not all(value is None or -_END <= value < _END for value in values):
                raise DitherError(
                    f"A number in {field.name} does not fit into 64 bits.",
                    fix="take to_dict() or to_json(), which have whole numbers of any size.",
                    charged=_KEPT,
                )
            columns.append(
                (replace(field, kind="real"), [_double(value) for value in values]) if field.long else (field, values)
            )
        return columns


def _reserved(program: Batch) -> Fraction:
    """Returns the part of epsilon that is for what is left out."""
    pairs = zip(program.cuts.parts, program.plans[program.own :], strict=False)
    return sum((plan.price.epsilon for part, plan in pairs if not part.free), Fraction(0))


def sample_text(plan: Plan) -> str | None:
    """Returns the probability of a plan's sample, as text; None if all units are looked at."""
    return None if plan.sample is None else str(plan.sample.q)


def left_out_lines(program: Batch) -> tuple[tuple[str, str], ...]:
    """Returns the lines of a plan on how it is estimated what is left out, and for which part of the price."""
    free = " and ".join(part.words for part in program.cuts.parts if part.free)
    paid = " and ".join(part.words for part in program.cuts.parts if not part.free)
    lines = [f"{free} is estimated from the same noisy count of people, free"] if free else []
    lines += [f"ε = {show(_reserved(program))} of the price is for an estimate of {paid}"] if paid else []
    return tuple(("" if place else "left out", line) for place, line in enumerate(lines))


_END = 1 << 63
COUNTED = (
    "groups without anybody are counted too: all public groups are shown, and plain SQL would not show empty ones. To leave "
    "them out, add HAVING COUNT(*) > 20, with a number above the noise, to the inner SELECT"
)
_KEPT = "nothing more: the answer is kept"


def _double(value: Value) -> Value:
    return double(value) if isinstance(value, int) else value


def _pandas(field: Field, text: Any) -> Any:
    """Returns the dtype of a column. Only pandas' own int and bool types can hold NULL."""
    if field.kind == "int":
        return "Int64" if field.nullable else "int64"
    if field.kind == "bool":
        return "boolean" if field.nullable else "bool"
    return {"real": "float64", "text": text, "date": "object", "timestamp": "datetime64[us]"}[field.kind]


def _library(name: str) -> Any:
    """Imports a library that the extra of the same name installs."""
    try:
        return import_module(name)
    except ImportError:
        raise DitherError(
            f"{name} is not installed, and it is needed for this form of the answer.",
            fix=f"{extra(name)} Or take to_arrow() or to_dict().",
            charged=_KEPT,
        ) from None


def _json(value: Value) -> Any:
    """Encodes a value for JSON, which has no dates, no infinity and no NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, (datetime.date, datetime.datetime)) else value


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _numeric(rows: tuple[tuple[Value, ...], ...], place: int) -> bool:
    return all(isinstance(row[place], (int, float)) or row[place] is None for row in rows)


def _number(value: Value, margin: float | None) -> str:
    """Shows a value with as many digits as its margin supports."""
    if value is None:
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if margin is None:
        return str(value) if isinstance(value, int) else f"{value:.8g}"
    digits = 0 if isinstance(value, int) else _digits(margin)
    text = f"{value:z.{digits}f}" if abs(value) < 1e15 else f"{value:.6g}"  # z: no minus before 0
    return f"{text} ± {margin:.{digits}f}" if margin < 1e15 else f"{text} ± {margin:.3g}"


def _unsure(value: Value) -> str:
    """Shows a value without a margin, with at most three digits."""
    return f"{value:z.3g} ± ?" if isinstance(value, float) else f"{value} ± ?"


def _digits(margin: float) -> int:
    """Returns the decimals that show two significant digits of the margin."""
    if margin <= 0:
        return 4
    digits = 0
    while digits < 9 and margin * 10**digits < 10:
        digits += 1
    return digits
