"""A price for which there is no exact noise is refused in the words of the question, whatever is asked."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dither as dt

TABLE = pa.table({"i": [1, 2], "city": ["a", "b"], "x": [1.0, 2.0], "k": ["a", "b"]})
COLUMNS = {"city": dt.column(), "x": dt.between(0, 10), "k": dt.values("a", "b")}
CATALOG = dt.Catalog({"t": dt.Table(TABLE, unit="i", max_rows=1, columns=COLUMNS)}, dt.Budget(10**12, "1e-3", left_out=False))
INTERNAL = ("scale", "must lie", "rho", "sensitivity")


@pytest.mark.parametrize("epsilon", [10**9, 10**11])
@pytest.mark.parametrize(
    "question",
    [
        "SELECT city, COUNT(*) AS n FROM t GROUP BY city",
        "SELECT city, AVG(x) AS a, MEDIAN(x) AS m FROM t GROUP BY city",
        "SELECT AVG(x) AS a, MEDIAN(x) AS m FROM t",
        "SELECT MODE(k) AS m FROM t",
        "SELECT COUNT(*) AS n FROM t",
    ],
)
def test_a_price_out_of_range_is_refused_in_plain_words(question: str, epsilon: int | str) -> None:
    delta = "1e-6" if "city" in question else None
    with dt.open(CATALOG, ledger=":memory:", make=True) as survey, pytest.raises(dt.DitherError) as refused:
        survey.quote(question, epsilon=epsilon, delta=delta)
    assert [word for word in INTERNAL if word in str(refused.value)] == []
    assert "epsilon" in str(refused.value)


def test_found_keys_say_what_to_do() -> None:
    with dt.open(CATALOG, ledger=":memory:", make=True) as survey, pytest.raises(dt.QueryError) as refused:
        survey.quote("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=10**5, delta="1e-6")
    assert "groups that are found in the data" in str(refused.value)
    assert "spend a smaller epsilon" in str(refused.value)
