"""Forgeries by people who were let in, and what must be stored and have happened afterwards.

A real server in its own process. `THINKWELL_FORGERIES=20000` runs a long campaign.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.abuse.client_frames import approval, chat_request, probe
from tests.abuse.forger import LIE, Forger
from tests.abuse.process import ServerProcess, server_process
from tests.abuse.raw_http import ask
from thinkwell.messages.message import UIMessage

AGENT = "/agents/bank/desk"
FORGERIES = int(os.environ.get("THINKWELL_FORGERIES", "120"))
JSON = ("Content-Type", "application/json")


@pytest.fixture
async def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServerProcess]:
    monkeypatch.setenv("THINKWELL_TEST_FOLDER", str(tmp_path))
    async with server_process(tmp_path, "tests.abuse.bank:app") as running:
        yield running
        assert running.alive
        assert not running.defects()


@pytest.mark.parametrize("seed", [1, 2])
async def test_whoever_may_only_look_changes_nothing_and_the_asker_can_still_decide(
    bank: ServerProcess, tmp_path: Path, seed: int
):
    """DESIGN §8.12: read-only means look only."""
    call_id = await open_approval(bank)
    before = messages(bank)
    await attack(bank, "token-gus", seed)
    assert messages(bank) == before
    assert transfers(tmp_path) == []
    async with connect(f"{bank.ws}{AGENT}?token=token-ann") as ann:
        await ann.send(json.dumps(approval(call_id, approved=True)))
        await until_said(bank, "moved 5")
    assert transfers(tmp_path) == [{"amount": 5, "principal": "ann"}]


@pytest.mark.parametrize("seed", [3, 4])
async def test_whoever_may_send_moves_no_money_and_puts_no_words_into_the_agents_mouth(
    bank: ServerProcess, tmp_path: Path, seed: int
):
    """DESIGN §8.12: only the server writes assistant messages, calls, results and approvals."""
    await open_approval(bank)
    await attack(bank, "token-sam", seed)
    assert transfers(tmp_path) == []
    for message in every_message(tmp_path):
        text = json.dumps(message)
        if message["role"] == "user":
            assert all(part["type"] == "text" for part in message["parts"])
        else:
            assert message["role"] == "assistant"
            assert LIE not in text
            assert "666" not in text


async def attack(bank: ServerProcess, token: str, seed: int) -> None:
    """Forgery after forgery, over the socket and over HTTP; then wait until all were served."""
    forger = Forger(seed)
    async with connect(f"{bank.ws}{AGENT}?token={token}", max_size=None) as socket:
        for number in range(FORGERIES):
            forged = forger.forge(messages(bank))
            if forged.path is None:
                await socket.send(json.dumps(forged.body))
                await served(socket, f"{seed}-{number}")
                continue
            body = json.dumps(forged.body).encode()
            headers = [JSON, ("Authorization", token)]
            answer = await asyncio.to_thread(
                ask, bank.port, "POST", f"{AGENT}/{forged.path}", headers, body
            )
            assert answer.status < 500, (forged, answer)


async def served(socket: ClientConnection, probe_id: str) -> None:
    """Frames are served in order: the answer to a question behind them says that they were."""
    await socket.send(json.dumps(probe(probe_id)))
    async with asyncio.timeout(30):
        while json.loads(await socket.recv()).get("probeId") != probe_id:
            pass


async def open_approval(bank: ServerProcess) -> str:
    """Staff asks for a transfer; the id of the call that waits for leave."""
    async with connect(f"{bank.ws}{AGENT}?token=token-ann") as ann:
        question = {"id": "q", "role": "user", "parts": [{"type": "text", "text": "transfer:5"}]}
        await ann.send(json.dumps(chat_request("r", [question], "submit-message")))
        await until_said(bank, "approval-requested")
    return next(p["toolCallId"] for m in messages(bank) for p in m["parts"] if "toolCallId" in p)


async def until_said(bank: ServerProcess, text: str) -> None:
    async with asyncio.timeout(30):
        while text not in json.dumps(messages(bank)):
            await asyncio.sleep(0.01)


def messages(bank: ServerProcess) -> list[UIMessage]:
    """What staff sees."""
    headers = [("Authorization", "token-ann")]
    return ask(bank.port, "GET", f"{AGENT}/get-messages", headers).json()


def every_message(folder: Path) -> list[dict[str, Any]]:
    """Whatever is stored, on every branch."""
    with closing(sqlite3.connect(f"file:{folder / 'abuse.db'}?mode=ro", uri=True)) as link:
        return [json.loads(row[0]) for row in link.execute("SELECT content FROM messages")]


def transfers(folder: Path) -> list[dict[str, Any]]:
    """The money that was moved."""
    file = folder / "transfers.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
