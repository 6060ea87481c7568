"""Several texts in one write are the frames that one write each would have been."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from thinkwell.server.joined_socket import join_frames

SIZES = (0, 1, 125, 126, 127, 65_535, 65_536, 70_000)


def read(data: bytes) -> list[Frame]:
    """The frames as another library reads them."""
    stream = StreamReader()
    stream.feed_data(data)
    stream.feed_eof()
    frames: list[Frame] = []
    while True:
        try:
            next(Frame.parse(stream.read_exact, mask=False))
        except StopIteration as parsed:
            frames.append(parsed.value)
        except EOFError:
            return frames


@given(st.lists(st.text() | st.sampled_from(SIZES).map(lambda size: "é" * (size // 2)), max_size=8))
def test_another_library_reads_the_same_texts(texts: list[str]):
    frames = read(join_frames(texts))
    assert [bytes(frame.data).decode() for frame in frames] == texts
    assert all(frame.fin and frame.opcode is Opcode.TEXT for frame in frames)


def test_every_length_of_a_header_is_right():
    texts = ["x" * size for size in SIZES]
    assert [bytes(frame.data).decode() for frame in read(join_frames(texts))] == texts
