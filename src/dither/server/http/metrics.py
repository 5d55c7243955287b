"""Counts for Prometheus: requests, questions by outcome, the line.

No seconds of an engine, and nothing of the process (its memory, its processor's time, its files), as Prometheus' own registry
has it: both depend on rows, and whoever may read the counts need not be somebody who may see the data.
"""

from __future__ import annotations

import os

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.multiprocess import MultiProcessCollector

_OWN = CollectorRegistry()
_REQUESTS = Counter("dither_requests", "Requests by route and status.", ["route", "status"], registry=_OWN)
_QUESTIONS = Counter("dither_questions", "Questions by kind and outcome.", ["kind", "outcome"], registry=_OWN)
_WAITING = Gauge("dither_waiting", "Questions waiting for their turn.", multiprocess_mode="livesum", registry=_OWN)
_RUNNING = Gauge("dither_running", "Questions being answered.", multiprocess_mode="livesum", registry=_OWN)

TYPE = prometheus_client.CONTENT_TYPE_LATEST


def count_request(route: str, status: int) -> None:
    _REQUESTS.labels(route, str(status)).inc()


def count_question(kind: str, outcome: str) -> None:
    _QUESTIONS.labels(kind, outcome).inc()


def page(waiting: int, running: int) -> bytes:
    """Returns the counts of all worker processes, in Prometheus' text format."""
    _WAITING.set(waiting)
    _RUNNING.set(running)
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return prometheus_client.generate_latest(_OWN)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return prometheus_client.generate_latest(registry)
