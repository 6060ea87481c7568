"""The chunks that type checkers know are those that are checked when they run (spec/01 §9.1)."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

import thinkwell.messages
from tests.architecture.support import run_python
from thinkwell.messages import StreamChunk
from thinkwell.messages.chunks import CHUNK_KINDS, check_chunk

KINDS: dict[str, Any] = {
    kind: shape
    for shape in get_args(StreamChunk)
    for kind in get_args(get_type_hints(shape)["type"])
}


def test_every_kind_of_chunk_has_one_shape():
    assert set(KINDS) == CHUNK_KINDS
    shapes = get_args(StreamChunk)
    assert sum(len(get_args(get_type_hints(s)["type"])) for s in shapes) == len(KINDS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_shape_has_the_fields_that_a_chunk_of_its_kind_may_have(kind: str):
    shape = KINDS[kind]
    assert {"type": kind}.keys() <= shape.__required_keys__
    wrong = {"type": kind, **dict.fromkeys(shape.__required_keys__ - {"type"}, object())}
    for name in shape.__optional_keys__:
        assert check_chunk({**wrong, name: object()}) != f"{kind} has no field `{name}`"
    for name in shape.__required_keys__ - {"type"}:
        without = {field: value for field, value in wrong.items() if field != name}
        assert check_chunk(without) == f"{kind} needs `{name}`"
    assert "needs" not in (check_chunk(wrong) or "")


def test_nobody_loads_them_who_does_not_ask():
    assert "StreamChunk" in thinkwell.messages.__all__
    loaded = run_python("import sys; from thinkwell import Think, App; print(*sys.modules)").split()
    assert "thinkwell.messages.stream_chunks" not in loaded
