"""Streams recorded from the reference fold into the messages it stored."""

import json
from pathlib import Path

import pytest

from tests.unit.messages.helpers import fold_chunks
from thinkwell.messages.chunks import check_chunk

LINES = Path(__file__).with_name("recorded.jsonl").read_text("utf-8").splitlines()
RECORDED = [json.loads(line) for line in LINES]
by_name = pytest.mark.parametrize("recorded", RECORDED, ids=[r["recording"] for r in RECORDED])


@by_name
def test_the_fold_is_the_stored_message(recorded):
    assert fold_chunks(recorded["chunks"], "unknown") == recorded["stored"]


@by_name
def test_every_recorded_chunk_is_legal(recorded):
    assert [problem for c in recorded["chunks"] if (problem := check_chunk(c))] == []
