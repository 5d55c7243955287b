"""Laws inside a sampler: described by their distribution function only, for a table's third look and for tests."""

from __future__ import annotations

from flint import arb

from dither.exact.law import Law, Piece


class Inner(Law):
    """A law that gives `span` and `at_most`; the rest follows."""

    def pmf(self, k: int) -> arb:
        return self.at_most(k) - self.at_most(k - 1)

    def more_than(self, k: int) -> arb:
        return 1 - self.at_most(k)

    def pieces(self) -> tuple[Piece, ...]:
        raise NotImplementedError
