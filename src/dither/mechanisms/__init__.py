"""Mechanisms: noise and its price in one frozen object, one file each: formula, why it is private, reference, class.

May import: `exact`, `privacy`.
Rule: noise and its price are computed in the same file.

    base        the Mechanism class; reads exact answers        norms       how far one unit moves a vector
    selection   reads scores; for the mechanisms that choose    geometric, laplace, gaussian, truncated: noise on numbers
    calibration how much Gaussian noise vectors need
    exponential, permute_and_flip, noisy_max: choose a candidate    randomized_response, sparse_vector, threshold
    structured  chooses an output of spaces/, which cannot be listed
    sampled     a mechanism on a secret sample of the units
    channel     given by a table of probabilities               compose, oblivious: made of other mechanisms
"""

from __future__ import annotations

from dither.mechanisms.base import Example, Mechanism, registry
from dither.mechanisms.channel import Channel
from dither.mechanisms.compose import Adaptive, Compose
from dither.mechanisms.exponential import Exponential
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.geometric import Geometric
from dither.mechanisms.laplace import Laplace
from dither.mechanisms.noisy_max import NoisyMax
from dither.mechanisms.norms import L1, L2, PerCoordinate
from dither.mechanisms.oblivious import Oblivious
from dither.mechanisms.permute_and_flip import PermuteAndFlip
from dither.mechanisms.randomized_response import RandomizedResponse
from dither.mechanisms.sampled import Sampled
from dither.mechanisms.spaces import Intervals, Orders, Paths, SpanningTrees, Subsets, TopK
from dither.mechanisms.sparse_vector import Session, SparseVector
from dither.mechanisms.structured import Structured
from dither.mechanisms.threshold import Threshold
from dither.mechanisms.truncated import TruncatedGeometric

__all__ = [
    "L1",
    "L2",
    "Adaptive",
    "Channel",
    "Compose",
    "Example",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Intervals",
    "Laplace",
    "Mechanism",
    "NoisyMax",
    "Oblivious",
    "Orders",
    "Paths",
    "PerCoordinate",
    "PermuteAndFlip",
    "RandomizedResponse",
    "Sampled",
    "Session",
    "SpanningTrees",
    "SparseVector",
    "Structured",
    "Subsets",
    "Threshold",
    "TopK",
    "TruncatedGeometric",
    "registry",
]
