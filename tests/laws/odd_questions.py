"""Right calls for everything that makes, asks and reads a question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dither as dt
from dither.catalog import file
from dither.client.remote import reach
from laws.odd_calls import CATALOG, Right


def questions() -> Iterator[Right]:
    survey = dt.open(CATALOG, ledger=":memory:")
    yield Right("open", file.to_catalog, {"catalog": CATALOG})
    server = {"url": "http://127.0.0.1:8321", "token": "dth_x", "known": "known.json", "ca": "ca.pem", "timeout": 5}
    yield Right("connect", reach, server)
    yield from _aggregates()
    yield from _steps(survey)
    price = {"epsilon": 1, "delta": 0}
    more: dict[str, Any] = {"margin": None, "confidence": "0.9", "assume_rows": 5}
    text = "SELECT COUNT(*) AS n FROM people"
    yield Right("Curator.quote", survey.quote, {"question": text, **price, **more})
    yield Right(
        "Curator.table", lambda **given: survey.table(**given).agg(n=dt.count()).query, {"name": "people", "alias": "p"}
    )
    answer = survey.ask(text, epsilon=1)
    yield Right("Answer.margins", answer.margins, {"confidence": "0.9"})
    yield Right("Answer.ranks", answer.ranks, {"confidence": "0.9"})
    yield Right("Answer[]", answer.__getitem__, {}, ("n",))


def _aggregates() -> Iterator[Right]:
    begun = dt.open(CATALOG, ledger=":memory:").table("people")

    def asked(call: Any) -> Any:
        return lambda **given: begun.agg(a=call(**given)).query

    for call in (dt.count, dt.count_distinct, dt.sum_, dt.mean, dt.median, dt.min_, dt.max_):
        yield Right(call.__name__, asked(call), {"x": "x", "where": "x > 3"})
    for spread in (dt.variance, dt.stddev):
        yield Right(spread.__name__, asked(spread), {"x": "x", "population": True, "where": "x > 3"})
    yield Right("quantile", asked(dt.quantile), {"x": "x", "p": 0.5, "where": "x > 3"})
    yield Right("clipped", asked(dt.clipped), {"x": "x"})


def _steps(survey: dt.Curator) -> Iterator[Right]:
    begun = survey.table("people")
    done = begun.agg(n=dt.count())
    yield Right("where", lambda condition: begun.where(condition).agg(n=dt.count()).query, {"condition": "x > 3"})
    yield Right("having", lambda condition: done.having(condition).query, {"condition": "n > 3"})
    yield Right("group_by", lambda *keys: begun.group_by(*keys).agg(n=dt.count()).query, {}, ("x", "id"))
    yield Right("group_by(name)", lambda k: begun.group_by(k=k).agg(n=dt.count()).query, {"k": "x"})
    yield Right("agg", lambda n: begun.agg(n=n).query, {"n": dt.count()})
    yield Right("per_unit", lambda c: begun.per_unit(c=c).agg(n=dt.mean("CLAMP(c, 0, 9)")).query, {"c": dt.count()})
    yield Right("per_unit(key)", lambda *keys: begun.per_unit(*keys, c=dt.count()).agg(n=dt.count()).query, {}, ("x",))
    yield Right("order_by", lambda *keys, **given: done.order_by(*keys, **given).query, {"descending": True}, ("n",))
    yield Right("limit", lambda **given: done.limit(**given).query, {"rows": 3, "offset": 1})
    given = {"table": "people", "on": None, "using": "id", "how": "inner", "alias": "q"}
    yield Right("join", lambda **given: begun.join(**given).agg(n=dt.count()).query, given)
    yield Right(
        "join(on)",
        lambda **given: begun.join(**given).agg(n=dt.count()).query,
        {"table": "people", "on": "people.id = q.id", "alias": "q"},
    )
