"""A graph on a catalog: questions about a table of edges, charged like any other.

    friends = survey.graph("friends")
    friends.quote.triangles(epsilon=1)       free: the price, the noise, whether the budget allows it
    friends.triangles(epsilon=1)             charged before any edge is read; asked again, it is free

The methods are those of `dt.Graph`. Two differ: the groups of `edges_between` are a column of the public table that lists the
nodes, and `bounded_triangles` takes the size of the graph from the catalog.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dither.catalog.values import Catalog
from dither.errors import ArgumentError, Fix, Text
from dither.exact.numbers import Number, flag, show
from dither.graphs import programme
from dither.graphs.answer import GraphAnswer
from dither.graphs.asking import Questions, Told, for_edges, for_nodes, price_of, shares, triangles_for_nodes
from dither.graphs.plan import GraphPlan, Source, check_size, source_of
from dither.graphs.questions import EdgesBetween, Question
from dither.privacy.neighbours import GRAPHS
from dither.query.work import NodeColumn, Work
from dither.session import Paid, Session
from dither.text import did_you_mean

MOST_GROUPS = 1000


@dataclass(frozen=True)
class GraphQuote:
    """What a question will cost and how exact it will be. Free: it reads no edge."""

    plan: GraphPlan
    refusal: str
    again: int | None

    @property
    def margin(self) -> Any:
        """The margin at 95 % confidence; None where it depends on the graph."""
        return self.plan.question.margins(None, self.plan.size).margin(CONFIDENCE)

    def __str__(self) -> str:
        question, unit, wide = self.plan.question, self.plan.source.unit, self.margin
        noises = [
            f"{_WORDS[each['mechanism']]} on {each['on']}, ε = {show(Fraction(each['epsilon']))}" for each in question.records()
        ]
        state = self.refusal or "allowed"
        if self.again is not None:
            state = f"free: given again from entry {self.again}"
        left_out = [f"what exceeds {name} = {bound}" for name, bound in question.bound.items() if name != "largest"]
        told = "?" if wide is None else show(wide)
        lines = {
            "question": self.plan.text,
            "price": f"ε = {show(question.loss().epsilon())}, charged before any edge is read",
            f"each {unit}": f"is {GRAPHS[unit].words}: {GRAPHS[unit]}",
            "noise": "; ".join(noises),
            "margin": f"{question.what} ± {told}",
            "not included": ", ".join([*self.plan.notes, *left_out]),
            "budget": state,
        }
        return "\n".join(f"{name:<13}  {text}" for name, text in lines.items())


CONFIDENCE = Fraction(19, 20)
_WORDS = {
    "Geometric": "geometric",
    "SmoothNoise": "heavy-tailed, in proportion to what one edge changes,",
    "Exponential": "chosen",
}


class Asked(Questions[Told]):
    """Plans questions about a table of edges."""

    def __init__(self, catalog: Catalog, source: Source, count: Callable[[Work], int]) -> None:
        self._catalog = catalog
        self._source = source
        self._count = count
        self.unit = source.unit

    def edges_between(self, by: str, *, epsilon: Number) -> Told:
        """Returns the number of edges for each pair of groups. `by`: a column of the public table that lists the nodes."""
        for_edges(self.unit, self._count_nodes, "edges_between", least=1)
        nodes = self._groups(by)
        return self._plan(EdgesBetween(price_of(epsilon), groups=nodes.groups, by=by), nodes)

    def bounded_triangles(self, *, epsilon: Number, most_triangles: int, left_out: bool | None = None) -> Told:
        """Returns the number of triangles that can be kept so that no node is in more than `most_triangles`. For node privacy.

        It solves a linear programme, whose time grows with the graph, so the catalog must say how large the graph is.
        """
        for_nodes(self.unit, "bounded_triangles", "ask for triangles.")
        limits = self._source.edges.at_most
        if limits.nodes is None or limits.edges is None:
            size = f"{{ nodes = {programme.MOST_NODES}, edges = {programme.MOST_EDGES} }}"
            raise ArgumentError(
                "bounded_triangles takes long on large graphs, and the catalog does not say how large this one is.",
                fix=Fix("the curator declares {it} at most.", it=Text(f"at_most = {size}")),
            )
        prices = shares(epsilon, left_out, self._estimates)
        return self._tell(triangles_for_nodes(prices, most_triangles, limits.nodes, limits.edges))

    def _tell(self, question: Question) -> Told:
        return self._plan(question, self._source.nodes)

    def _plan(self, question: Question, nodes: Any) -> Told:
        size = self._count_nodes() if self.unit == "edge" else 0
        return self._ask(GraphPlan(question, self._source, size, nodes))

    def _ask(self, plan: GraphPlan) -> Told:
        raise NotImplementedError

    def _count_nodes(self) -> int:
        size = self._source.size
        return check_size(self._count(self._source.count_nodes()) if size is None else size)

    @property
    def _estimates(self) -> bool:
        return self._catalog.budget.left_out

    def _groups(self, by: str) -> NodeColumn:
        """Returns the nodes with their groups. Refuses a column whose values are not public, or nodes with several rows."""
        nodes = self._source.nodes
        if not isinstance(nodes, NodeColumn):
            raise ArgumentError(
                "The nodes of this graph are labels, which have no groups.",
                fix=Fix("the curator lists nodes and groups in a public table: {it}.", it=Text('nodes = "people.id"')),
            )
        table = self._catalog.tables[nodes.table]
        facts = table.columns.get(by) if isinstance(by, str) else None
        groups = None if facts is None else facts.values or facts.found
        if groups is None or len(groups) > MOST_GROUPS:
            known = [name for name, each in table.columns.items() if name != nodes.column and (each.values or each.found)]
            near = did_you_mean(by, known) if isinstance(by, str) else ""
            raise ArgumentError(
                f"by must be a column of {nodes.table} with at most {MOST_GROUPS} public values.",
                fix=f"{near}The columns are: {', '.join(known) or 'none'}.",
            )
        if table.key != nodes.column:
            raise ArgumentError(
                f"A node may have several rows in {nodes.table}, and so several groups.",
                fix=Fix("the curator declares {it}.", it=Text(f'key = "{nodes.column}"')),
            )
        return replace(nodes, group=by, groups=tuple(groups), complete=facts is not None and facts.values is None)


class CatalogGraph(Asked[GraphAnswer]):
    """A graph of a catalog: each question is charged. Made by `Curator.graph`."""

    def __init__(
        self,
        catalog: Catalog,
        name: str,
        session: Session,
        release: Callable[..., Any],
        count: Callable[[Work], int],
        analyst: str | None,
        fresh: bool,
    ) -> None:
        super().__init__(catalog, source_of(catalog, name), count)
        self._session = session
        self._release = release
        self._analyst = analyst
        self._fresh = flag(fresh, "fresh")

    @property
    def quote(self) -> GraphQuotes:
        """The same questions, for their price and margin. Free."""
        return GraphQuotes(self._catalog, self._source, self._count, self._session, self._analyst)

    def _ask(self, plan: GraphPlan) -> GraphAnswer:
        def show(paid: Paid) -> GraphAnswer:
            numbers = paid.noisy[0].cells
            told: dict[str, Any] = {"charged": paid.charged, "remaining": paid.left(), "receipt": paid.receipt}
            return GraphAnswer.of(plan.question, numbers, plan.source.unit, plan.size, notes=plan.notes, **told)

        answer: GraphAnswer = self._release(plan, plan.text, show, analyst=self._analyst, fresh=self._fresh)
        return answer

    def __repr__(self) -> str:
        return f"<Graph {self._source.table}, unit={self.unit!r}>"


class GraphQuotes(Asked[GraphQuote]):
    """The questions about a graph, quoted."""

    def __init__(
        self, catalog: Catalog, source: Source, count: Callable[[Work], int], session: Session, analyst: str | None
    ) -> None:
        super().__init__(catalog, source, count)
        self._session = session
        self._analyst = analyst

    def _ask(self, plan: GraphPlan) -> GraphQuote:
        preview = self._session.preview(self._session.request(plan, plan.text, self._analyst))
        return GraphQuote(plan, preview.refusal, preview.again)
