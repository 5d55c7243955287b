"""Plans a question on a secret sample of units: fewer people are looked at, so noise on the sample may be smaller.

    price ─▶ the larger price of the noise inside ─▶ an ordinary plan ─▶ the same plan on a sample, at the price

The price is what is charged. A plan that costs (epsilon, delta) on the units it sees costs, on a sample in which each unit is
with probability q,

    epsilon' = ln(1 + q (e^epsilon - 1))        delta' = q delta        rho' = rho, or epsilon'^2 / 2 if delta' is 0

(mechanisms/sampled.py has the proof). So the noise is planned at the largest epsilon whose epsilon' is at most the price,
rounded down, and at delta / q; `on_sample` checks that the loss of what was planned is covered before it states the price.
It is amplified as a whole: all releases of a plan, and the choice of keys, look at one sample.

Poisson sampling needs neighbours that add or remove a unit, a unit with a name to toss a coin for, and everything that touches
data on the sample. So refused are tables whose rows are people, replaced neighbours, bounds that the question chooses, and
estimates of what bounds leave out. Refused too is what has no honest estimate or no margin from a sample: distinct values,
quantiles, spreads, sums of either sign without a count, and numbers computed across groups.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dither.catalog.values import Catalog
from dither.errors import ArgumentError, Fix, Name, QueryError, Text
from dither.exact.numbers import show
from dither.mechanisms.sampled import amplified, before_sampling
from dither.planning.plan import Plan, Sample, plan
from dither.planning.price import Price
from dither.planning.releases.base import Linear, Noise, Reading, title_of
from dither.planning.releases.count import Combined
from dither.planning.releases.sampled import SampledMean, SampledSum
from dither.planning.releases.sums import Ratio
from dither.privacy.losses import Approx, Loss, Pure
from dither.privacy.neighbours import AddRemove
from dither.query.resolve.relations import Resolved
from dither.query.work import Sums


def plan_sampled(query: Resolved, catalog: Catalog, price: Price, q: Fraction) -> Plan:
    """Plans a question on a sample, so that `price` is charged."""
    refuse(query, catalog)
    inside = Price(before_sampling(price.epsilon, q), price.delta / q)
    if inside.delta >= 1:
        raise ArgumentError(
            f"delta divided by the sample must be below 1, and {show(price.delta)} / {show(q)} is not.",
            fix=Fix("ask with a smaller {delta}.", delta=Name("delta")),
        )
    return on_sample(plan(query, catalog, inside), price, q)


def on_sample(made: Plan, price: Price, q: Fraction) -> Plan:
    """Returns a plan as it is on a sample: its price, and its readings as estimates of the whole table."""
    if not isinstance(made.bounding.neighbours, AddRemove) or not made.work.by_unit:
        raise TypeError("only units that are added or removed are sampled by coins")
    stated, loss = _stated(made.loss, price, q)
    return replace(
        made,
        work=replace(made.work, sample=q),
        readings=tuple(_estimate(reading, made.noises, q) for reading in made.readings),
        price=stated,
        loss=loss,
        sample=Sample(q, made.price),
    )


def _stated(inside: Loss, price: Price, q: Fraction) -> tuple[Price, Loss]:
    """Returns the price of the sample and its loss. Raises if the price does not cover the noise."""
    if not isinstance(inside, Pure | Approx):
        raise TypeError("a plan's loss is pure or (epsilon, delta)")
    epsilon, delta = inside.pair()
    if amplified(epsilon, q) > price.epsilon or q * delta > price.delta:
        raise ArithmeticError("the noise on the sample costs more than its price")
    if isinstance(inside, Pure):
        return Price(price.epsilon), Pure(price.epsilon)
    return price, Approx(price.epsilon, price.delta)


def _estimate(reading: Reading, noises: tuple[Noise, ...], q: Fraction) -> Reading:
    """Returns the reading as an estimate of the whole table. Refuses one without an honest margin."""
    if isinstance(reading, Ratio):
        return SampledMean(reading.aggregate, replace(reading, least=1), q)  # a public minimum is one of the whole table
    if isinstance(reading, Linear | Combined):
        linear = reading.linear(noises)
        read = [noises[term.noise].of for term in (*linear.terms, *linear.counted)]
        if all(isinstance(each.measure, Sums) for each in read):
            if any(each.signed for each in read):
                raise _signed(reading)
            return SampledSum(reading.aggregate, reading, q)
    raise QueryError(
        f"{reading.title} of everybody cannot be estimated from a sample within a margin.",
        span=reading.aggregate.span,
        fix=Fix("ask for COUNT, SUM, AVG or COUNT(DISTINCT unit), or ask without {sample}.", sample=Name("sample")),
    )


def _signed(reading: Reading) -> QueryError:
    count = title_of(reading.aggregate, "COUNT({})")
    return QueryError(
        f"{reading.title} alone has no margin on a sample: its values may be below 0 and cancel out.",
        span=reading.aggregate.span,
        fix=Fix("ask for {count} beside it, or ask without {sample}.", count=Text(count), sample=Name("sample")),
    )


def refuse(query: Resolved, catalog: Catalog) -> None:
    """Refuses a question that cannot be asked on a sample, by the question and the catalog."""
    if catalog.neighbours != AddRemove.name:
        raise ArgumentError(
            "A sample by secret coins hides who is added or removed, and here people are replaced and their number is public.",
            where=f'neighbours = "{catalog.neighbours}"',
            fix=Fix("ask without {sample}.", sample=Name("sample")),
        )
    if not query.by_unit:
        raise ArgumentError(
            f"In {query.tables[0]} every row is a person of its own, without a name to toss a secret coin for.",
            where=f'[tables.{query.tables[0]}] unit = "row"',
            fix=Fix("declare the column that identifies a person as unit, or ask without {sample}.", sample=Name("sample")),
        )
    if query.query.sets or query.query.above:
        what = "Grouping sets" if query.query.sets else "Numbers computed across groups"
        raise ArgumentError(
            f"{what} have no margins on a sample yet.",
            fix=Fix("ask for the groups themselves, or ask without {sample}.", sample=Name("sample")),
        )
    if query.max_rows is None or query.max_groups is None:
        raise ArgumentError(
            "Bounds cannot be chosen from the data for a question on a sample.",
            fix=Fix(
                "name both bounds, as in {max_rows} and {max_groups}, or ask without {sample}.",
                max_rows=10,
                max_groups=5,
                sample=Name("sample"),
            ),
        )
