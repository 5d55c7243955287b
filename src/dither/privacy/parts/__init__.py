"""Parts of a loss curve: single releases whose law of the log ratio is known exactly.

May import: `exact`. Each part states its worst pair of output laws, its pure epsilon if it has one, and its zCDP.
Files: base, response (Response, KaryResponse, BoundedRange), laplace, gaussian, vector (GaussianVector), sampled (Subsampled),
subsampled (SubsampledGaussian), clouds.
"""

from __future__ import annotations

from dither.privacy.parts.base import Part, Transform, registry
from dither.privacy.parts.gaussian import DiscreteGaussian, Gaussian
from dither.privacy.parts.laplace import DiscreteLaplace, Laplace
from dither.privacy.parts.response import BoundedRange, KaryResponse, Response
from dither.privacy.parts.sampled import Subsampled
from dither.privacy.parts.subsampled import SubsampledGaussian
from dither.privacy.parts.vector import GaussianVector

__all__ = [
    "BoundedRange",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "GaussianVector",
    "KaryResponse",
    "Laplace",
    "Part",
    "Response",
    "Subsampled",
    "SubsampledGaussian",
    "Transform",
    "registry",
]
