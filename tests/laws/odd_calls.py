"""A right call for everything public, and the wrong objects that are put in the place of its arguments."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dither as dt
from dither.mechanisms.base import Mechanism

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    3,
    -1,
    2**64,
    10**400,
    10**5000,
    0.5,
    float("nan"),
    float("inf"),
    1e308,
    5e-324,
    1j,
    Decimal("NaN"),
    Fraction(1, 3),
    "",
    "x",
    "a b",
    "\0",
    "１２",
    "1/0",
    b"x",
    (),
    (1, 2),
    ("x",),
    (None, None),
    [],
    [None],
    [[1, 2], [3]],
    [3, "x"],
    {},
    {"x": 1},
    {3: None},
    {1, 2},
    object(),
    int,
    len,
    iter(()),
    datetime.date(2020, 1, 1),
    datetime.datetime(2020, 1, 1),
    np.array([]),
    np.array([1.5, float("nan")]),
    np.array(["x"]),
    np.array([[1, 2], [3, 4]]),
    np.float32(2),
    np.int8(3),
    dt.Pure(1),
    dt.Table({"a": [1]}, unit="row"),
    dt.AddRemove(),
    dt.count(),
)


@dataclass(frozen=True)
class Right:
    """A call that is right, with the arguments it is made with, by name; `star`: arguments without a name."""

    name: str
    call: Callable[..., Any]
    given: dict[str, Any]
    star: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return self.name


def odd_calls(right: Right) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The call with one argument replaced, with its first two replaced, and with everything replaced."""
    names = list(right.given)
    for thing in ODD:
        for name in names:
            yield _shown(right, {**right.given, name: thing}, right.star)
        yield _shown(right, dict.fromkeys(names, thing), right.star)
        for place in range(len(right.star)):
            yield _shown(right, right.given, (*right.star[:place], thing, *right.star[place + 1 :]))
    for first in ODD[::3] if len(names) > 1 else ():
        for second in ODD[1::3]:
            yield _shown(right, {**right.given, names[0]: first, names[1]: second}, right.star)


def _shown(right: Right, given: dict[str, Any], star: tuple[Any, ...]) -> tuple[str, Callable[[], Any]]:
    text = ", ".join([*(_text(it) for it in star), *(f"{name}={_text(it)}" for name, it in given.items())])
    return f"{right.name}({text})", lambda: right.call(*star, **given)


def _text(thing: Any) -> str:
    return f"10**{len(str(Decimal(thing)))}" if isinstance(thing, int) and thing > 10**300 else repr(thing)[:60]


PEOPLE = dt.Table({"id": [1, 2], "x": [3, 4]}, unit="id", max_rows=1, columns={"x": dt.between(0, 9)})
CATALOG = dt.Catalog({"people": PEOPLE}, dt.Budget(500))


def declarations() -> Iterator[Right]:
    yield Right("between", dt.between, {"low": 0, "high": 9, "step": 1, "kind": "int", "null": False})
    yield Right("values", dt.values, {"null": False}, ("a", "b"))
    yield Right("column", dt.column, {"kind": "int", "between": (0, 9), "step": 1, "values": (1, 2), "null": True})
    yield Right("Budget", dt.Budget, {"epsilon": 1, "delta": "1e-6", "per_analyst": "0.5"})
    yield Right("Rows", dt.Rows, {"public": None, "at_least": 5})
    table = {"source": {"id": [1]}, "unit": "id", "by_row": False, "public": False, "max_rows": 1, "max_groups": 2}
    yield Right("Table", declared, {**table, "rows": {"at_least": 5}, "key": None, "columns": {"x": dt.between(0, 9)}})
    yield Right("Table, several", declared, {"unit": {"column": "id", "references": "people.id"}, "source": {"id": [1]}})
    given = {"tables": {"people": PEOPLE}, "budget": dt.Budget(1), "neighbours": "add-remove", "snapshot": "1"}
    yield Right("Catalog", dt.Catalog, given)


def declared(**given: Any) -> dt.Catalog:
    """A table is wrong at the latest when a catalog is made of it."""
    return dt.Catalog({"people": PEOPLE, "t": dt.Table(**given)}, dt.Budget(1))


def workloads() -> Iterator[Right]:
    """Workloads: their questions, and what they cost."""
    yield Right("Workload.thresholds", dt.Workload.thresholds, {"cells": 8})
    yield Right("Workload.ranges", dt.Workload.ranges, {"cells": 8})
    yield Right("Workload.attributes", dt.Workload.attributes, {"count": 3})
    yield Right("Workload.histogram", dt.Workload.histogram, {}, (2, 3))
    yield Right("Workload.marginals", dt.Workload.marginals, {"sizes": (2, 3), "ways": 1})
    yield Right("Workload.matrix", dt.Workload.matrix, {"rows": [[1, 0]]})
    work = dt.Workload.thresholds(8)
    yield Right("Workload.weighted", work.weighted, {"weight": 2})
    yield Right("Workload.compare", work.compare, {"epsilon": 1, "delta": "1e-6"})
    given = {"epsilon": 1, "delta": "1e-6", "neighbours": dt.Replace(), "max_groups": 2, "max_rows": 3}
    yield Right("Workload.design", work.design, given)
    yield Right("Workload.design.release", work.design(epsilon=1).release, {"histogram": [1] * 8})
    yield Right("Workload.design.margins", work.design(epsilon=1).margins, {"confidence": "0.9"})


def tradeoffs() -> Iterator[Right]:
    """Trade-offs, with few questions: a strategy for many takes long to find."""
    given = {"question": "thresholds", "error": 4, "epsilon": 1, "delta": "1e-6", "most": 4}
    yield Right("tradeoff", dt.tradeoff, given)
    yield Right("tradeoff(questions)", dt.tradeoff, {"question": "histogram", "questions": 4, "error": 4})
    yield Right("Tradeoff[way]", dt.tradeoff("histogram", questions=2, epsilon=1).__getitem__, {"key": ("one by one", "pure")})


def streams() -> Iterator[Right]:
    """Running sums; every call gets one of its own, as numbers that were fed are not taken back."""
    given = {"horizon": 9, "epsilon": 1, "delta": "1e-6", "contributions": 2, "largest": 3}
    yield Right("RunningSum", dt.RunningSum, given)
    yield Right("RunningSum(rho)", dt.RunningSum, {"horizon": None, "rho": 1})
    yield Right("RunningSum.feed", lambda values: dt.RunningSum(9, epsilon=1).feed(values), {"values": [1, 2]})
    running = dt.RunningSum(9, rho=1)
    yield Right("RunningSum.margin", running.margin, {"confidence": "0.9"})
    yield Right("RunningSum.margins", running.margins, {"confidence": "0.9", "steps": 5})
    yield Right("RunningSum.resume", dt.RunningSum.resume, {"state": running.state()})
    path = Path(os.environ["XDG_CACHE_HOME"]) / "gone"  # a folder of this run: conftest.py

    def save_and_load(path: Any, key: Any) -> None:
        dt.RunningSum(9, rho=1).save(path, key)
        dt.RunningSum.load(path, key)

    yield Right("RunningSum.save", save_and_load, {"path": path, "key": bytes(32)})


def traces() -> Iterator[Right]:
    """Traced programs, and what their values are given."""
    data, table = dt.records([0, 1, 2], 0, 2), dt.records([[0, 1], [2, 1]], 0, 2)
    noise = dt.Geometric(epsilon=1, sensitivity=1)
    yield Right("records", dt.records, {"values": [1, 2], "low": 0, "high": 3, "step": "1/2"})
    yield Right(
        "trace",
        lambda program, data, limit: dt.trace(program, data, limit=limit),
        {"program": lambda x: x.sum().release(noise), "data": data, "limit": dt.PureFilter(10)},
    )

    def ask(epsilon: Any, step: Any, low: Any, high: Any) -> Any:
        return dt.trace(lambda rows: dt.StatisticalQueries(rows, epsilon=epsilon, step=step).mean(len, low, high), table)

    yield Right("StatisticalQueries", ask, {"epsilon": 1, "step": "1/2", "low": 0, "high": 1})
    for name, given in (
        ("clip", {"low": 0, "high": 1, "step": "1/2"}),
        ("floor", {"step": 2}),
        ("minimum", {"other": 1}),
        ("release", {"mechanism": noise}),
        ("__getitem__", {"key": 1}),
    ):
        yield Right(
            f"trace({name})", lambda _name=name, **odd: dt.trace(lambda x: _none(getattr(x, _name)(**odd)), data), given
        )
    for name, given in (("clip_norm", {"norm": 1}), ("truncate", {"step": 2}), ("__getitem__", {"key": (slice(None), 0)})):
        yield Right(
            f"trace({name})", lambda _name=name, **odd: dt.trace(lambda x: _none(getattr(x, _name)(**odd)), table), given
        )


def _none(value: object) -> None:
    """Drops a private value, which a program must not return."""


def places() -> Iterator[Right]:
    plane = {"epsilon": 1, "step": "1/2", "unit": "metre", "region": ((0, 0), (9, 9))}
    yield Right("PlanarLaplace", dt.PlanarLaplace, plane)
    noise = dt.PlanarLaplace(epsilon=1)
    yield Right("PlanarLaplace.for_answer", dt.PlanarLaplace.for_answer, {"epsilon": 1, "sensitivity": 2, "step": "1/2"})
    yield Right("PlanarLaplace.release", noise.release, {"exact": (1, 2)})
    yield Right("PlanarLaplace.release(x)", lambda x: noise.release((x, 0)), {"x": 1})
    yield Right("PlanarLaplace.between", noise.between, {"x": (1, 2), "y": (0, 0)})
    yield Right("PlanarLaplace.probability", noise.probability, {"exact": (1, 2), "output": (0, 0)})
    yield Right("PlanarLaplace.margin", noise.margin, {"confidence": "0.9"})
    yield Right("PlanarLaplace.remap", noise.remap, {"output": (1, 2), "places": [[0, 0], [1, 1]], "prior": [1, 2]})
    yield Right("PlanarLaplace.verify_pairs", noise.verify_pairs, {"pairs": [((0, 0), (1, 1))]})
    points = {"points": [(0, 0), (1, 1)], "distance": "euclid", "epsilon": 1, "unit": "metre"}
    yield Right("MetricExponential", dt.MetricExponential, points)
    finite = dt.MetricExponential([(0, 0), (1, 1)], epsilon=1)
    yield Right("MetricExponential.release", finite.release, {"exact": (0, 0)})
    yield Right("MetricExponential.between", finite.between, {"x": (0, 0), "y": (1, 1)})
    yield Right("MetricExponential.margin", finite.margin, {"confidence": "0.9"})
    yield Right("MetricGrid", dt.MetricGrid, {"width": 3, "height": 4, "epsilon": 1})
    yield Right("MetricGrid.release", dt.MetricGrid(3, 4, epsilon=1).release, {"exact": (1, 2)})
    yield Right("MetricGrid.margin", dt.MetricGrid(3, 4, epsilon=1).margin, {"confidence": "0.9"})
    yield Right("PerDistance", dt.PerDistance, {"epsilon": 1, "unit": "metre"})
    yield Right("PerDistance.between", dt.PerDistance(1).between, {"distance": 3})
    yield Right("PerDistance.repeat", dt.PerDistance(1).repeat, {"n": 3})
    yield Right("LocalMap", dt.LocalMap, {"latitude": 48, "longitude": 16})
    centre = dt.LocalMap(latitude=48, longitude=16)
    yield Right("LocalMap.metres", centre.metres, {"latitude": 48, "longitude": 16})
    yield Right("LocalMap.degrees", centre.degrees, {"places": (1, 2)})


def local() -> Iterator[Right]:
    yield Right("LocalSurvey.choice", dt.LocalSurvey.choice, {"name": "x", "values": ["a", "b"], "epsilon": 1, "kind": "unary"})
    yield Right("LocalSurvey.number", dt.LocalSurvey.number, {"name": "x", "low": 0, "high": 9, "epsilon": 1})
    survey, age = dt.LocalSurvey.choice("x", ["a", "b"], epsilon=1), dt.LocalSurvey.number("x", 0, 9, epsilon=1)
    yield Right("LocalSurvey.from_json", dt.LocalSurvey.from_json, {"text": survey.to_json()})
    yield Right("LocalSurvey.report", survey.report, {"value": "a"})
    yield Right("LocalSurvey.report(number)", age.report, {"value": 3})
    yield Right("LocalSurvey.reports", survey.reports, {"values": ["a", "b"]})
    yield Right("LocalSurvey.reports(number)", age.reports, {"values": [1, 2]})
    yield Right("LocalClient", dt.LocalClient, {"survey": survey, "memory": None})
    yield Right(
        "LocalClient.report",
        lambda value, fresh: dt.LocalClient(survey).report(value, fresh=fresh),
        {"value": "a", "fresh": True},
    )
    yield Right("Aggregator", dt.Aggregator, {"survey": survey})
    desk = dt.Aggregator(survey)
    yield Right("Aggregator.add", desk.add, {"reports": [survey.report("a")]})
    yield Right("Aggregator.estimate", desk.estimate, {"confidence": "0.9"})
    yield Right("HeavyHitters", dt.HeavyHitters, {"name": "x", "bits": 12, "epsilon": 1})
    words = dt.HeavyHitters("x", bits=9, epsilon=1)
    yield Right("HeavyHitters.report", words.report, {"value": 5})
    reports = [words.report(5)]
    yield Right("HeavyHitters.find", words.find, {"reports": reports, "most": 2, "confidence": "0.9"})
    yield Right("shuffled_delta", dt.shuffled_delta, {"epsilon0": 1, "reports": 9, "epsilon": "0.1"})
    yield Right("shuffled_epsilon", dt.shuffled_epsilon, {"epsilon0": 1, "reports": 9, "delta": "0.1"})


def graphs() -> Iterator[Right]:
    """Graphs and their questions, for edges and for nodes."""
    given: dict[str, Any] = {"edges": [(0, 1), (1, 2)], "nodes": 4, "unit": "edge"}
    yield Right("Graph", dt.Graph, given)
    yield Right("Graph(texts)", dt.Graph, {"edges": [("a", "b")], "nodes": ["a", "b"]})
    by_edge, by_node = dt.Graph([(0, 1), (1, 2)], 4), dt.Graph([(0, 1), (1, 2)], 4, unit="node")
    yield Right("Graph.edge_count", by_edge.edge_count, {"epsilon": 1})
    yield Right("Graph.edge_count for nodes", by_node.edge_count, {"epsilon": 1, "most_degree": 2, "left_out": True})
    yield Right("Graph.density", by_edge.density, {"epsilon": 1})
    yield Right("Graph.degree_histogram", by_edge.degree_histogram, {"epsilon": 1, "largest": 2})
    yield Right("Graph.degree_sequence", by_edge.degree_sequence, {"epsilon": 1})
    yield Right("Graph.edges_between", by_edge.edges_between, {"groups": dict.fromkeys(range(4), "a"), "epsilon": 1})
    yield Right("Graph.triangles", by_edge.triangles, {"epsilon": 1, "margin_share": "1/4"})
    yield Right("Graph.stars", by_edge.stars, {"k": 2, "epsilon": 1, "margin_share": "1/4"})
    yield Right("Graph.cumulative_degrees", by_node.cumulative_degrees, {"epsilon": 1, "most_degree": 2, "side": "at least"})
    yield Right("Graph.suggest_degree", by_node.suggest_degree, {"epsilon": 1, "largest": 4, "for_epsilon": 1})
    bounds = {"most_triangles": 2, "most_nodes": 9, "most_edges": 9}
    yield Right("Graph.bounded_triangles", by_node.bounded_triangles, {"epsilon": 1, **bounds})
    told = by_edge.triangles(epsilon=1, margin_share="1/4")
    for answer in (by_edge.edge_count(epsilon=1), told):
        yield Right("GraphAnswer.margin", answer.margin, {"confidence": "0.9"})


def losses() -> Iterator[Right]:
    yield Right("Pure", dt.Pure, {"epsilon": 1, "rho": "0.1"})
    yield Right("Approx", dt.Approx, {"epsilon": 1, "delta": "1e-6"})
    yield Right("ZCDP", dt.ZCDP, {"rho": 1, "delta": "1e-6"})
    yield Right("Curve", dt.Curve, {"parts": ((dt.parts.Gaussian(1), 2),)})
    yield Right("Curve.of", dt.Curve.of, {"part": dt.parts.Gaussian(1), "count": 2})
    for loss in (dt.Pure(1), dt.Approx(1, "1e-6"), dt.ZCDP(1), dt.Curve.of(dt.parts.Gaussian(1), 2)):
        kind = type(loss).__name__
        yield Right(f"{kind}.epsilon", loss.epsilon, {"delta": "1e-5"})
        yield Right(f"{kind}.delta", loss.delta, {"epsilon": 1})
        yield Right(f"{kind}.repeat", loss.repeat, {"n": 2})
        yield Right(f"{kind}.group", loss.group, {"k": 2})
    yield Right("total", dt.total, {"losses": [dt.Pure(1)]})
    yield Right("parallel", dt.parallel, {"losses": [dt.Pure(1)], "neighbours": dt.Replace()})
    for part, given in PARTS.items():
        yield Right(f"parts.{part.__name__}", part, given)
    yield Right("PureFilter", dt.PureFilter, {"epsilon": 1})
    yield Right("ApproxFilter", dt.ApproxFilter, {"epsilon": 1, "delta": "1e-6"})
    yield Right("ZCDPFilter", dt.ZCDPFilter, {"rho": 1})
    for ledger in (dt.PureFilter(1), dt.ApproxFilter(1, "1e-6"), dt.ZCDPFilter(1), dt.Odometer()):
        yield Right(f"{type(ledger).__name__}.try_spend", ledger.try_spend, {"loss": dt.Pure("1e-9")})
    yield Right("Replace", dt.Replace, {"n": 5})
    yield Right("Group", dt.Group, {"of": dt.Replace(), "k": 2})


PARTS: dict[Any, dict[str, Any]] = {
    dt.parts.Response: {"epsilon": 1, "delta": "1e-6"},
    dt.parts.BoundedRange: {"epsilon": 1},
    dt.parts.Laplace: {"epsilon": 1},
    dt.parts.DiscreteLaplace: {"epsilon": 1, "steps": 2},
    dt.parts.Gaussian: {"mu2": 1},
    dt.parts.DiscreteGaussian: {"shift": 1, "variance": 4},
    dt.parts.SubsampledGaussian: {"q": "0.1", "sigma": 2, "removed": False},
}


SPACES: list[tuple[Any, Any]] = [
    (dt.spaces.Subsets(items=3, k=2), [1, 2, 3]),
    (dt.spaces.Intervals(cells=2), [1, 2]),
    (dt.spaces.Paths((("a", "b"), ("b", "c")), "a", "c"), [1, 2]),
    (dt.spaces.SpanningTrees(((0, 1), (1, 2), (0, 2))), [1, 2, 3]),
    (dt.spaces.TopK(items=3, k=2), [1, 2, 3]),
    (dt.spaces.Orders(items=2), [[0, 1], [0, 0]]),
]


def meanings() -> Iterator[Right]:
    noise = dt.Geometric(epsilon=1, sensitivity=1)
    yield Right("verify", dt.verify, {"mechanism": noise, "pairs": [(1, 2)], "claimed": 1})
    yield Right("verify(delta)", dt.verify, {"mechanism": noise, "pairs": [(1, 2)], "claimed": 1, "delta": "1e-6"})
    yield Right("profile", dt.profile, {"mechanism": noise, "pairs": [(1, 2)], "epsilons": [0, 1]})
    yield Right("postprocess", dt.postprocess, {"mechanism": noise, "function": abs})
    prior = {"mechanism": noise, "prior": {1: "1/2", 2: "1/2"}}
    yield Right("leakage.posterior", dt.leakage.posterior, {**prior, "answer": 3, "steps": 1})
    yield Right("leakage.measure", dt.leakage.measure, {**prior, "steps": 1})
    yield Right("leakage.flat", dt.leakage.flat, {"values": [1, 2]})
    told, pure = dt.guarantees, dt.Pure(1)
    yield Right("factor", told.factor, {"epsilon": 1})
    yield Right("power", told.power, {"loss": pure, "false_alarms": "0.1", "delta": "1e-6"})
    yield Right("tradeoff", told.tradeoff, {"loss": pure, "false_alarms": ["0.1"], "delta": "1e-6"})
    steps = {"about": "value", "neighbours": dt.Replace(), "people": 2}
    yield Right("posterior", told.posterior, {"loss": pure, "prior": "0.1", **steps})
    yield Right("queries", told.queries, {"budget": pure, "margin": 9, "confidence": "0.9"})
    yield Right("describe", told.describe, {"loss": pure, "neighbours": dt.Replace(), "delta": "1e-6"})
    moved = dt.sensitivity
    ends = {"low": 0, "high": 9, "neighbours": dt.AddRemove()}
    yield Right("sensitivity.count", moved.count, {"neighbours": dt.AddRemove()})
    yield Right("sensitivity.sum", moved.sum, ends)
    yield Right("sensitivity.mean", moved.mean, {**ends, "at_least": 5, "empty": 0})
    yield Right("sensitivity.centred_mean", moved.centred_mean, {**ends, "at_least": 5})
    yield Right("sensitivity.median", moved.median, {**ends, "convention": "midpoint", "at_least": 5, "empty": 0})
    yield Right("sensitivity.variance", moved.variance, {**ends, "at_least": 5, "sample": True})
    yield Right("sensitivity.maximum", moved.maximum, ends)
    yield Right("sensitivity.minimum", moved.minimum, ends)
    yield Right("sensitivity.histogram", moved.histogram, {"neighbours": dt.AddRemove()})
    yield Right("sensitivity.thresholds", moved.thresholds, {"points": 5, "neighbours": dt.AddRemove()})
    given = {"ranges": [(0, 9)], "neighbours": dt.AddRemove(), "at_least": 5}
    yield Right("sensitivity.attribute_means", moved.attribute_means, given)
    given = {"low": 0, "high": 9, "n": 50, "epsilon": 1, "neighbours": dt.AddRemove()}
    yield Right("sensitivity.compare", moved.compare, given)
    yield Right("Usefulness[name]", moved.compare(0, 9, 50).__getitem__, {"name": "mean"})
    given = {"w": lambda table, r: table.count(r), "candidates": "ab", "records": "ab", "n": 3, "neighbours": dt.Replace()}
    yield Right("sensitivity.score", moved.score, given)
    yield Right("sensitivity.score, declared", moved.score, {**given, "declared": 1, "pairs": 2})


def mechanisms() -> Iterator[Right]:
    yield Right("L1", dt.L1, {"value": 1, "dimension": 3})
    yield Right("L2", dt.L2, {"value": 1, "dimension": 3})
    yield Right("PerCoordinate", dt.PerCoordinate, {"count": 2, "each": 1})
    choice = {"epsilon": 1, "sensitivity": 1, "candidates": ["a", "b"], "monotone": True}
    made: dict[type[Mechanism], dict[str, Any]] = {
        dt.Geometric: {"epsilon": 1, "sensitivity": 1},
        dt.TruncatedGeometric: {"epsilon": 1, "sensitivity": 1, "n": 9},
        dt.Laplace: {"epsilon": 1, "sensitivity": 1, "grid": "1/4"},
        dt.Gaussian: {"sensitivity": 1, "grid": "1/4", "epsilon": 1, "delta": "1e-6"},
        dt.Exponential: choice,
        dt.PermuteAndFlip: choice,
        dt.NoisyMax: choice,
        dt.RandomizedResponse: {"epsilon": 1, "categories": 3},
        dt.SparseVector: {"epsilon": 1, "sensitivity": 1, "threshold": 5, "cutoff": 2},
        dt.Threshold: {"epsilon": 1, "delta": "1e-6", "keys_per_unit": 2, "rule": "optimal"},
        dt.Channel: {"rows": [["3/4", "1/4"], ["1/4", "3/4"]]},
        dt.Compose: {"parts": [dt.Geometric(epsilon=1, sensitivity=1)] * 2},
    }
    for kind, given in made.items():
        yield Right(kind.__name__, kind, given)
        yield from _methods(kind(**given))
    yield Right("Gaussian(scale)", dt.Gaussian, {"sensitivity": 1, "scale": 5})
    yield Right("Gaussian(rho)", dt.Gaussian, {"sensitivity": dt.L2(1, 2), "rho": 1, "grid": 1})
    for space, numbers in SPACES:
        yield Right("Structured", dt.Structured, {"space": space, "epsilon": 1, "sensitivity": 1, "monotone": True})
        one = dt.Structured(space, epsilon=1, sensitivity=1)
        yield Right(f"Structured.release, {space.tag}", one.release, {"exact": numbers})
        yield Right(f"Structured.law, {space.tag}", one.law, {"exact": numbers})
        yield Right(f"Structured.outcome, {space.tag}", one.outcome, {"k": 0})
        yield Right(f"Structured.margin, {space.tag}", one.margin, {"confidence": "0.9", "best": 1})
        yield Right(f"spaces, {space.tag}", type(space), {each.name: getattr(space, each.name) for each in fields(space)})
    coins = dt.Geometric(epsilon=1, sensitivity=1).sampled("1/2")
    yield Right("Geometric.sampled", dt.Geometric(epsilon=1, sensitivity=1).sampled, {"q": "1/2", "neighbours": dt.Replace(4)})
    yield Right("Sampled.release", coins.release, {"exact": [1, 0, 1]})
    yield Right("Sampled.law", coins.law, {"exact": [1, 0, 1]})
    yield Right("Sampled.estimate", coins.estimate, {"released": 7})
    yield Right("RandomizedResponse(p)", dt.RandomizedResponse, {"p": "0.9"})
    for each in (dt.Geometric, dt.Laplace, dt.Gaussian, dt.Exponential, dt.NoisyMax, dt.SparseVector, dt.TruncatedGeometric):
        rest = {name: it for name, it in made[each].items() if name not in ("epsilon", "delta")}
        yield Right(f"{each.__name__}.with_scale", each.with_scale, {"scale": 5, **rest})


def around() -> Iterator[Right]:
    """Mechanisms made of others, and of functions."""
    coin = dt.RandomizedResponse(epsilon=1)
    yield Right("Compose.repeat", dt.Compose.repeat, {"mechanism": coin, "n": 3})
    yield Right("Compose, star", dt.Compose, {}, (coin, coin))
    both = dt.Compose(coin, coin)
    yield Right("Compose.release", both.release, {"exact": 1})
    yield Right("Adaptive", dt.Adaptive, {"first": coin, "choose": lambda answer: coin, "second": dt.Pure(1)})
    follow = dt.Adaptive(coin, lambda answer: coin)
    yield Right("Adaptive.release", follow.release, {"exact": 1})
    yield Right("Adaptive.law", follow.law, {"exact": 1})
    yield Right("Adaptive.outcome", follow.outcome, {"k": 0})
    yield Right("Oblivious", dt.Oblivious, {"function": sum, "mechanism": coin, "otherwise": 0})
    asked = dt.Oblivious(sum, coin)
    yield Right("Oblivious.release", asked.release, {"data": [1]})
    yield Right("Oblivious.law", asked.law, {"data": [1]})
    yield Right("Oblivious.check", asked.check, {"pairs": [((0,), (1,))], "other": asked})
    for relation in (dt.AddRemove(), dt.Replace()):
        yield Right(f"{type(relation).__name__}.pairs", relation.pairs, {"values": [0, 1], "rows": 2})


def _methods(one: Any) -> Iterator[Right]:
    kind = type(one).__name__
    exact: Any = [1, 2] if kind in ("Exponential", "PermuteAndFlip", "NoisyMax", "SparseVector") else 1
    yield Right(f"{kind}.release", one.release, {"exact": exact})
    yield Right(f"{kind}.law", one.law, {"exact": exact})
    yield Right(f"{kind}.outcome", one.outcome, {"k": 0})
    more: dict[str, Any] = {"Exponential": {"candidates": 5, "best": 2}, "PermuteAndFlip": {"candidates": 5, "best": 2}}
    more |= {"NoisyMax": {"candidates": 5}, "RandomizedResponse": {"respondents": 9}}
    yield Right(f"{kind}.margin", one.margin, {"confidence": "0.9", **more.get(kind, {})})
    if kind == "RandomizedResponse":
        yield Right("estimate", one.estimate, {"counts": [1, 2, 3]})
        yield Right("variance", one.variance, {"share": "0.1", "respondents": 9})
    if kind == "Threshold":
        yield Right("shown", one.shown, {"units": 3})
    if kind == "SparseVector":
        yield Right("probability", one.probability, {"exact": [1, 2], "transcript": [False, True]})
        yield Right("ask", lambda exact: one.start().ask(exact), {"exact": 3})
