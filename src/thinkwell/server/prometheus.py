"""Numbers → Prometheus' text format, version 0.0.4. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from thinkwell.core.histogram import Histogram

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels: TypeAlias = Mapping[str, str]


class Sample(NamedTuple):
    """One line."""

    value: float
    labels: Labels = MappingProxyType({})
    suffix: str = ""
    """What the name of the line has beyond that of its family: `_sum`, `_bucket`."""


class Family(NamedTuple):
    """One metric with all its lines."""

    name: str
    kind: Literal["counter", "gauge", "histogram", "summary"]
    about: str
    samples: Iterable[Sample]


def histogram(name: str, about: str, taken: Histogram) -> Family:
    """A family of buckets."""
    samples = [Sample(count, {"le": _number(bound)}, "_bucket") for bound, count in taken.buckets()]
    ends = [Sample(taken.total, suffix="_sum"), Sample(sum(taken.counts), suffix="_count")]
    return Family(name, "histogram", about, samples + ends)


def encode(families: Iterable[Family]) -> str:
    """The whole page. A family without lines is left out."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    samples = tuple(family.samples)
    if not samples:
        return
    about = family.about.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {family.name} {about}"
    yield f"# TYPE {family.name} {family.kind}"
    for value, labels, suffix in samples:
        yield f"{family.name}{suffix}{_labels(labels)} {_number(value)}"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(value)
