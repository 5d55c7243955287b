"""Questions built by hand from nodes are held to the same rules as those from SQL."""

from __future__ import annotations

import pytest

from dither.errors import QueryError
from dither.query.nodes import Aggregate, Column, Compute, Join, Literal, Named, PerUnit, Query, Relation, Scan, Union
from dither.query.resolve import resolve
from dither.query.work import UNIT
from sql.survey import CATALOG

P, V = Scan("people", "p"), Scan("visits", "v")
ID = Named("id", Column("p.person_id"))
N = Aggregate("n", "count")
ONE = Literal(1)


def asked(source: Relation, *keys: Named) -> Query:
    return Query(source, keys, (N,), (Named("n", Column("n")),))


@pytest.mark.parametrize(
    "source",
    [
        Compute(P, (ID, Named(UNIT, ONE))),
        Compute(P, (ID, Named("#unit1", ONE))),
        Compute(P, (ID, Named("x", ONE), Named("x", ONE))),
        PerUnit(P, (ID,), (Aggregate(UNIT, "count"),)),
        PerUnit(P, (ID,), (Aggregate("#sum x", "count"),)),
        PerUnit(P, (ID,), (N, N)),
        PerUnit(P, (ID, Named(UNIT, Column("p.region"))), ()),
        PerUnit(P, (ID, Named("n", Column("p.region"))), (N,)),
        PerUnit(P, (ID, Named("id", Column("p.region"))), (N,)),
        PerUnit(Scan("regions", "r"), (Named(UNIT, Column("r.name")),), (N,)),
        Join(P, P, ((Column("p.person_id"), Column("p.person_id")),), "inner"),
        Scan("people", "#p"),
    ],
)
def test_no_name_takes_the_place_of_another(source: Relation) -> None:
    with pytest.raises(QueryError, match=r"named|# cannot begin a name"):
        resolve(asked(source), CATALOG)


def test_no_key_takes_the_place_of_an_aggregate() -> None:
    with pytest.raises(QueryError, match="named n"):
        resolve(asked(P, Named("n", Column("p.region"))), CATALOG)
    with pytest.raises(QueryError, match="# cannot begin"):
        resolve(asked(P, Named(UNIT, Column("p.region"))), CATALOG)


def test_the_parts_of_a_union_have_the_same_columns() -> None:
    with pytest.raises(QueryError, match="same columns"):
        resolve(asked(Union((Compute(P, (ID,)), Compute(P, (Named("x", ONE),))))), CATALOG)
