"""Search: what it finds, how long it takes, how large its index is.

    python -m benchmarks.search                        # everything, on generated conversations
    python -m benchmarks.search --messages 20000       # a smaller store for the times
    python -m benchmarks.search --locomo locomo10.json # recall on the public conversations as well

Recall@k is the share of questions with one of their evidence messages among the first k hits; the
query is the question as it is asked. The generated conversations have the shape of LoCoMo: two
people, 600 messages, 140 questions in other word forms, facts that only the message before makes
clear. The public ones are at github.com/snap-research/locomo, and no part of this repository.

Times are taken while nothing else runs in this process. On a busy machine wall times say little, so
the processor time of each query and of each transaction of the loop is printed beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

from thinkwell.session.search.find import Lookup
from thinkwell.session.search.index import SearchIndex
from thinkwell.session.session import Session
from thinkwell.store.sqlite import SqliteStore

SEED = 20260328


class Conversation(NamedTuple):
    messages: list[tuple[str, str]]
    """Id and text."""
    questions: list[tuple[str, set[str]]]
    """What is asked, and where the answer is."""


# Conversations

_DID = [
    ("paint", "painted", "painting"),
    ("cook", "cooked", "cooking"),
    ("repair", "repaired", "repairing"),
    ("photograph", "photographed", "photographing"),
    ("plant", "planted", "planting"),
    ("borrow", "borrowed", "borrowing"),
    ("visit", "visited", "visiting"),
    ("organize", "organized", "organizing"),
    ("sketch", "sketched", "sketching"),
    ("restore", "restored", "restoring"),
    ("record", "recorded", "recording"),
    ("carve", "carved", "carving"),
]
_VOCABULARY = """
things: mural bicycle violin garden museum engine lantern kayak recipe orchard telescope canoe
piano quilt tractor fountain greenhouse archive poster aquarium staircase chimney sculpture
notebook harbor bakery festival workshop library theater accordion balcony barn basket beehive
bookcase bracelet bridge cabin camera candle carpet cello chapel clock compass cottage cradle
curtain diary dollhouse drum easel fence ferry fireplace flute fresco gate guitar hammock harp
jewel kettle kite ladder lamp locket loom mailbox map mask mirror mosaic necklace oven paddle
pendant pillow plaque pond puppet raft saddle scarf shed shrine sled sofa statue stove sundial
sweater tapestry teapot tent tower trumpet trunk vase wagon wardrobe well windmill
kinds: blue wooden old tiny broken golden rusty striped foreign quiet huge antique velvet marble
copper purple crooked dusty elegant faded glossy green heavy hollow ivory noisy oval pale plain
polished red rough round silver slender square steep white yellow
places: Lisbon Oslo Kyoto Denver Naples Quebec Tartu Bergen Porto Galway Bruges Turin Hobart
Windsor Cusco Aarhus Basel Cork Dakar Essen Fresno Ghent Hanoi Izmir Jaipur Krakow Lyon Malmo
Nantes Odense Perth Quito Reno Seville Tampa Utrecht Vilnius Wroclaw York Zagreb
people: grandmother neighbor cousin teacher landlord nephew colleague dentist uncle roommate
brother coach aunt baker barber boss butcher carpenter daughter doctor driver fiance florist
gardener godfather grandson guide janitor lawyer librarian mechanic niece nurse painter pastor
pilot plumber sister stepson tailor
"""
_WORDS = {
    kind: words.split()
    for kind, words in re.findall(r"^(\w+): ([^:]+)$(?=\n\w+:|\n?\Z)", _VOCABULARY, re.M)
}
_SMALL = [
    "That sounds lovely, tell me more about the {thing}!",
    "I was thinking about {did} something in {where} one day.",
    "My {who} always talks about {did}.",
    "Work was busy today, how about you?",
    "Have you seen the new {thing} in {where}? Everybody talks about it.",
    "I could never do that, I have no patience for {did}.",
    "Haha, you are right. What a week!",
    "What about your {who}, are they well?",
    "I want a {kind} {thing} one day.",
    "Thanks, that means a lot to me!",
]


def generate(number: int, size: int = 600) -> Conversation:
    """A conversation of LoCoMo's shape."""
    rng = random.Random(SEED + number)
    speakers = rng.sample(["Caroline", "Evan", "Maria", "Joanna", "Nate", "Tim"], 2)
    messages: list[tuple[str, str]] = []
    questions: list[tuple[str, set[str]]] = []

    def say(text: str) -> str:
        messages.append((f"D{len(messages)}", text))
        return messages[-1][0]

    while len(messages) < size:
        for _ in range(rng.randrange(1, 5)):
            say(_small(rng))
        _fact(rng, rng.choice(speakers), say, questions)
    return Conversation(messages, questions)


def _pick(rng: random.Random, kind: str) -> str:
    return rng.choice(_WORDS[kind])


def _small(rng: random.Random) -> str:
    return rng.choice(_SMALL).format(
        thing=_pick(rng, "things"),
        did=rng.choice(_DID)[2],
        where=_pick(rng, "places"),
        who=_pick(rng, "people"),
        kind=_pick(rng, "kinds"),
    )


def _fact(rng: random.Random, name: str, say: Any, questions: list[tuple[str, set[str]]]) -> None:
    do, did, doing = rng.choice(_DID)
    thing, kind, where = _pick(rng, "things"), _pick(rng, "kinds"), _pick(rng, "places")
    who = _pick(rng, "people")
    match rng.randrange(4):
        case 0:  # all in one message
            at = say(f"Last month I {did} a {kind} {thing} in {where} with my {who}.")
            questions.append((f"Where did {name} {do} the {kind} {thing}?", {at}))
        case 1:  # only the question before it says what it is about
            say(f"How did {doing} the {thing} for your {who} go?")
            at = say(f"Great, it took the whole weekend in {where}, and it is {kind} now!")
            questions.append((f"What does the {thing} of {name}'s {who} look like?", {at}))
        case 2:  # two pieces of evidence
            first = say(f"I am {doing} a {thing} at the moment, it is for my {who}.")
            say(_small(rng))
            second = say(f"By the way, the {thing} is finished, my {who} loves it.")
            questions.append((f"For whom is {name} {doing} the {thing}?", {first, second}))
        case _:  # in other words than it is asked
            at = say(f"My {who} gave me a {kind} {thing}, straight from {where}.")
            questions.append((f"Which present did {name} get from the {who}?", {at}))


def read_locomo(path: Path) -> Iterator[Conversation]:
    """The public conversations. Questions without an answer in them (category 5) are left out."""
    for sample in json.loads(path.read_text()):
        said = sample["conversation"]
        messages = [
            (turn["dia_id"], turn["text"])
            for number in range(1, 100)
            for turn in said.get(f"session_{number}", [])
        ]
        known = {message_id for message_id, _ in messages}
        asked = [
            (str(each["question"]), {e for e in each.get("evidence", []) if e in known})
            for each in sample["qa"]
            if each["category"] != 5
        ]
        yield Conversation(messages, [(question, found) for question, found in asked if found])


# The store


class Meter:
    """What transactions of the loop have cost, in milliseconds: wall and processor time."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def line(self, what: str) -> str:
        return (
            f"{what}: {len(self.wall)} transactions, processor p50 {_p(self.cpu, 50):.2f} ms, "
            f"p95 {_p(self.cpu, 95):.2f}, longest {max(self.cpu):.2f}; wall p50 "
            f"{_p(self.wall, 50):.2f}, longest {max(self.wall):.2f}"
        )


@asynccontextmanager
async def opened(path: Path, meter: Meter | None = None):
    store = SqliteStore(path)
    await store.open()

    async def commit(work: Any, /) -> Any:
        async with store.transaction() as tx:
            start, busy = time.perf_counter(), time.thread_time()
            done = await work(tx)
        if meter is not None:
            meter.wall.append(1000 * (time.perf_counter() - start))
            meter.cpu.append(1000 * (time.thread_time() - busy))
        return done

    try:
        yield store, SearchIndex(store, commit)
    finally:
        await store.close()


async def fill(store: SqliteStore, agent: str, messages: Sequence[tuple[str, str]]) -> None:
    session = Session(store, agent)
    for start in range(0, len(messages), 500):
        await session.add_messages(
            [
                {
                    "id": message_id,
                    "role": "assistant" if (start + i) % 2 else "user",
                    "parts": [{"type": "text", "text": text}],
                }
                for i, (message_id, text) in enumerate(messages[start : start + 500])
            ]
        )


async def recall(conversations: Sequence[Conversation], what: str) -> dict[str, float]:
    """How often the evidence is among the first hits."""
    at5 = at10 = mean10 = count = 0.0
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder) / "recall.db") as (store, index):
            for number, conversation in enumerate(conversations):
                await fill(store, f"recall/{number}", conversation.messages)
            await index.catch_up(["recall"], 1_000_000)
            for number, conversation in enumerate(conversations):
                for question, evidence in conversation.questions:
                    hits = await index.find(
                        Lookup(query=question, agent=f"recall/{number}", limit=10)
                    )
                    ids = [hit.id for hit in hits]
                    at5 += bool(evidence & set(ids[:5]))
                    at10 += bool(evidence & set(ids))
                    mean10 += len(evidence & set(ids)) / len(evidence)
                    count += 1
    figures = {"recall@5": at5 / count, "recall@10": at10 / count}
    print(
        f"{what}: {len(conversations)} conversations, {int(count)} questions: "
        f"recall@5 {at5 / count:.1%}, recall@10 {at10 / count:.1%}; "
        f"share of all evidence in the first ten {mean10 / count:.1%}",
        flush=True,
    )
    return figures


async def times(count: int) -> None:
    """How long searches and indexing take in one agent with many messages."""
    with tempfile.TemporaryDirectory() as folder:
        path, indexing = Path(folder) / "times.db", Meter()
        async with opened(path, indexing) as (store, index):
            parts = [generate(1000 + n, 1800) for n in range(count // 600 + 1)]
            said = [text for part in parts for _, text in part.messages]
            # Three at a time are about as long as a message of LoCoMo.
            texts = [" ".join(said[n : n + 3]) for n in range(0, 3 * count, 3)]
            await fill(store, "times/one", [(f"m{n}", text) for n, text in enumerate(texts)])
            size, start = _size(path), time.perf_counter()
            while not await index.catch_up(["times"], 50):
                pass
            took = time.perf_counter() - start
            print(f"indexed {len(texts)} messages in {took:.0f} s", flush=True)
            print(indexing.line("indexing, on the loop"), flush=True)
            questions = [question for part in parts[:40] for question, _ in part.questions]
            random.Random(SEED).shuffle(questions)
            await _search(index, questions[:300])
        _sizes(path, texts, _size(path) - size, questions[:60])


async def _search(index: SearchIndex, questions: Sequence[str]) -> None:
    wall: list[float] = []
    busy: list[float] = []
    await index.find(Lookup(query=questions[0], agent="times/one"))
    blocked, stop = [0.0], asyncio.Event()
    watching = asyncio.get_running_loop().create_task(_watch(blocked, stop))
    for question in questions:
        start, cpu = time.perf_counter(), time.process_time()
        await index.find(Lookup(query=question, agent="times/one"))
        wall.append(1000 * (time.perf_counter() - start))
        busy.append(1000 * (time.process_time() - cpu))
    stop.set()
    await watching
    print(
        f"searches: {len(wall)}, wall p50 {_p(wall, 50):.1f} ms, p95 {_p(wall, 95):.1f}; processor "
        f"p50 {_p(busy, 50):.1f}, p95 {_p(busy, 95):.1f}; most processor time of the loop's thread "
        f"between two looks {blocked[0]:.2f} ms",
        flush=True,
    )


async def _watch(most: list[float], stop: asyncio.Event) -> None:
    """The longest the loop's own thread worked without letting anybody else in."""
    last = time.thread_time()
    while not stop.is_set():
        await asyncio.sleep(0.001)
        now = time.thread_time()
        most[0] = max(most[0], 1000 * (now - last))
        last = now


def _sizes(path: Path, texts: Sequence[str], grown: int, questions: Sequence[str]) -> None:
    """The index beside what it could be: what each kind costs and gives."""
    said = sum(len(text.encode()) for text in texts)
    print(f"the file grew by {grown / said:.0%} of the text ({said / 1e6:.1f} MB)")
    with closing(sqlite3.connect(path)) as file:
        for table in ("search_words", "search_parts"):
            print(f"  {table}: {_held(file, table) / said:.0%}")
        for detail in ("full", "column", "none"):
            file.execute(
                f"CREATE VIRTUAL TABLE t_{detail} USING fts5(text, lead, scope, "
                f"content='search_entries', content_rowid='id', detail={detail}, "
                "tokenize='porter unicode61 remove_diacritics 2')"
            )
            file.execute(f"INSERT INTO t_{detail} (t_{detail}) VALUES ('rebuild')")  # noqa: S608
            spent: list[float] = []
            for question in questions:
                words = [f'"{word.strip("?")}"' for word in question.split()[-3:]]
                start = time.process_time()
                file.execute(
                    f"SELECT rowid, bm25(t_{detail}) s FROM t_{detail} "  # noqa: S608
                    f"WHERE t_{detail} MATCH ? ORDER BY s LIMIT 10",
                    (" OR ".join(words),),
                ).fetchall()
                spent.append(1000 * (time.process_time() - start))
            held = _held(file, f"t_{detail}")
            print(
                f"  detail={detail}: {held / said:.0%} of the text, three words ranked "
                f"p95 {_p(spent, 95):.0f} ms of processor time",
                flush=True,
            )


def _held(file: sqlite3.Connection, table: str) -> int:
    data = file.execute(f"SELECT SUM(LENGTH(block)) FROM {table}_data").fetchone()[0]  # noqa: S608
    sizes = file.execute(f"SELECT SUM(LENGTH(sz)) FROM {table}_docsize").fetchone()[0]  # noqa: S608
    return (data or 0) + (sizes or 0)


def _size(path: Path) -> int:
    with closing(sqlite3.connect(path)) as file:
        pages, page, free = (
            file.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "page_size", "freelist_count")
        )
    return (pages - free) * page


def _p(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1] if len(values) > 1 else values[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="What search finds, and what it costs.")
    parser.add_argument("--messages", type=int, default=100_000, help="0: no times")
    parser.add_argument("--conversations", type=int, default=10)
    parser.add_argument("--locomo", type=Path, help="locomo10.json")
    options = parser.parse_args()
    print(f"SQLite {sqlite3.sqlite_version}, load {', '.join(f'{n:.1f}' for n in os.getloadavg())}")
    made = [generate(number) for number in range(options.conversations)]
    asyncio.run(recall(made, "generated"))
    if options.locomo is not None:
        asyncio.run(recall(list(read_locomo(options.locomo)), "LoCoMo"))
    if options.messages:
        asyncio.run(times(options.messages))
    print(f"load at the end {', '.join(f'{n:.1f}' for n in os.getloadavg())}")


if __name__ == "__main__":
    main()
