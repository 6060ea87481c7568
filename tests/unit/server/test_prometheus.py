"""Prometheus' text format (spec/04 §17)."""

from __future__ import annotations

from thinkwell.core.histogram import Histogram
from thinkwell.server.prometheus import Family, Sample, encode, histogram


def test_a_family_has_its_help_its_type_and_a_line_for_each_sample():
    samples = [Sample(2, {"status": "completed", "agent_class": "a"}), Sample(0.5)]
    assert encode([Family("x_total", "counter", "What x did.", samples)]) == (
        "# HELP x_total What x did.\n"
        "# TYPE x_total counter\n"
        'x_total{status="completed",agent_class="a"} 2\n'
        "x_total 0.5\n"
    )


def test_what_would_end_a_label_or_a_line_is_escaped():
    text = encode([Family("x", "gauge", "a\nb\\", [Sample(1, {"l": 'q"\\\n'})])])
    assert text.splitlines()[0] == r"# HELP x a\nb\\"
    assert text.splitlines()[2] == r'x{l="q\"\\\n"} 1'


def test_a_family_without_samples_is_left_out():
    assert encode([Family("x", "gauge", "", [])]) == ""


def test_buckets_count_up_and_end_with_infinity():
    taken = Histogram((0.1, 1.0))
    taken.counts, taken.total = [2, 1, 1], 7.65
    assert encode([histogram("t", "", taken)]).splitlines()[2:] == [
        't_bucket{le="0.1"} 2',
        't_bucket{le="1.0"} 3',
        't_bucket{le="+Inf"} 4',
        "t_sum 7.65",
        "t_count 4",
    ]
