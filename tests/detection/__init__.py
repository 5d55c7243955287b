"""The detection benchmark: correct and broken mechanisms from the literature, a few lines each, with their true epsilon.

    anchors   the list every auditor is measured by           counting   counts, sums, histograms, calibration
    choosing  noisy max, exponential mechanism, sparse vector  local      randomized response, RAPPOR, composition
    glue      defects around the noise: data, keys, streams    score      detection, false alarms, time, tightness

`case` defines a case, `vectors` holds the shared mechanisms. May import: `audit` only. Law kept: `truth` is the least epsilon
that holds on the case's pairs at the claimed delta. A case is broken exactly if `truth` exceeds the claim. Tests compute the
truths in another way.
"""

from __future__ import annotations

from detection.anchors import ANCHORS
from detection.case import Case
from detection.choosing import CHOOSING
from detection.counting import COUNTING
from detection.glue import GLUE
from detection.local import LOCAL

CASES: tuple[Case, ...] = (*ANCHORS, *COUNTING, *CHOOSING, *LOCAL, *GLUE)

__all__ = ["CASES", "Case"]
