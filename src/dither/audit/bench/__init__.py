"""The detection benchmark: correct and broken mechanisms from the literature, a few lines each, with their true epsilon.

    anchors   the list every auditor is measured by           counting   counts, sums, histograms, calibration
    choosing  noisy max, exponential mechanism, sparse vector  local      randomized response, RAPPOR, composition
    glue      defects around the noise: data, keys, streams    score      detection, false alarms, time, tightness

May import: `audit` only. Law kept: `truth` is the least epsilon that holds on the case's own pairs at the claimed delta,
so a case is broken exactly if `truth` exceeds the claim; tests compute the truths again in another way.
"""

from __future__ import annotations

from dither.audit.bench.anchors import ANCHORS
from dither.audit.bench.case import Case
from dither.audit.bench.choosing import CHOOSING
from dither.audit.bench.counting import COUNTING
from dither.audit.bench.glue import GLUE
from dither.audit.bench.local import LOCAL

CASES: tuple[Case, ...] = (*ANCHORS, *COUNTING, *CHOOSING, *LOCAL, *GLUE)

__all__ = ["CASES", "Case"]
