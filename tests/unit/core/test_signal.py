"""Abort signals (spec/02 §1.7)."""

from __future__ import annotations

import asyncio

import pytest

from thinkwell.core.errors import AbortTurn
from thinkwell.core.signal import AbortController


def test_a_fresh_signal_asks_for_nothing():
    signal = AbortController().signal
    assert (signal.aborted, signal.reason) == (False, None)
    signal.throw_if_aborted()


def test_the_first_reason_stays():
    controller = AbortController()
    controller.abort("first")
    controller.abort("second")
    assert controller.signal.reason == "first"
    with pytest.raises(AbortTurn, match="first"):
        controller.signal.throw_if_aborted()


def test_a_stop_passes_through_except_exception():
    assert not issubclass(AbortTurn, Exception)


def test_listeners_hear_once_in_the_order_they_came():
    controller, heard = AbortController(), list[str]()
    controller.signal.add_listener(lambda reason: heard.append(f"a {reason}"))
    controller.signal.add_listener(lambda reason: heard.append(f"b {reason}"))
    controller.abort("now")
    controller.abort("again")
    assert heard == ["a now", "b now"]


def test_a_late_listener_hears_at_once():
    controller, heard = AbortController(), list[str]()
    controller.abort("before")
    controller.signal.add_listener(heard.append)()
    assert heard == ["before"]


def test_a_disposed_listener_hears_nothing():
    controller, heard = AbortController(), list[str]()
    dispose = controller.signal.add_listener(heard.append)
    dispose()
    dispose()
    controller.abort()
    assert heard == []


def test_a_listener_that_raises_does_not_silence_the_others(caplog: pytest.LogCaptureFixture):
    controller, heard = AbortController(), list[str]()

    def broken(_: str) -> None:
        raise RuntimeError("no")

    controller.signal.add_listener(broken)
    controller.signal.add_listener(heard.append)
    controller.abort("stop")
    assert heard == ["stop"]
    assert "listener" in caplog.text


async def test_waiting_ends_with_the_reason_before_and_after_the_abort():
    controller = AbortController()
    waiting = asyncio.ensure_future(controller.signal.wait())
    await asyncio.sleep(0)
    controller.abort("enough")
    assert (await waiting, await controller.signal.wait()) == ("enough", "enough")


def test_following_another_signal_ends_with_its_detacher():
    outer, inner, other = AbortController(), AbortController(), AbortController()
    detach = inner.follow(outer.signal)
    other.follow(outer.signal)()
    outer.abort("outer")
    assert (inner.signal.reason, other.signal.aborted) == ("outer", False)
    detach()


def test_following_a_signal_that_is_aborted_already_aborts_at_once():
    outer, inner = AbortController(), AbortController()
    outer.abort("too late")
    inner.follow(outer.signal)
    assert inner.signal.reason == "too late"


def test_following_nobody_is_allowed():
    controller = AbortController()
    controller.follow(None)()
    assert not controller.signal.aborted
