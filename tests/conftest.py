"""What every test shares: no network but loopback, and one worker for what must not run twice."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("thinkwell", deadline=None, max_examples=60)
settings.load_profile("thinkwell")

# Tests that start processes or browsers run one after the other, on one worker per kind.
ONE_WORKER = ("crash", "browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for kind in ONE_WORKER:
            if item.get_closest_marker(kind) is not None:
                item.add_marker(pytest.mark.xdist_group(kind))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test logged goes to another process, which takes no half emoji."""
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
    return report


def is_local(address: Any) -> bool:
    """Whether an address stays on this machine: a Unix socket or a loopback IP."""
    if not isinstance(address, tuple):
        return True
    host = str(address[0])
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture(autouse=True)
def _no_network_but_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        assert is_local(address), f"a test tried to reach {address!r}"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
