"""The tree against a model made of dicts: any order of writes gives the same tree (spec/03 §2)."""

from __future__ import annotations

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.session.conftest import ids, text
from thinkwell.session.draft import make_draft
from thinkwell.session.rows import AUTO
from thinkwell.session.session import Session
from thinkwell.store.sqlite import SqliteStore

NAMES = st.sampled_from([f"m{n}" for n in range(12)])
CONTENTS = st.text(max_size=40)


class Model:
    """The obvious tree: parents and contents in insertion order, and a pinned head."""

    def __init__(self):
        self.parents: dict[str, str | None] = {}
        self.contents: dict[str, str] = {}
        self.pinned: str | None = None

    @property
    def head(self):
        return self.pinned or next(reversed(self.parents), None)

    def children(self, message_id):
        return [child for child, parent in self.parents.items() if parent == message_id]

    def path(self, leaf: str | None) -> list[str]:
        path: list[str] = []
        while leaf is not None:
            path.insert(0, leaf)
            leaf = self.parents[leaf]
        return path

    def append(self, message_id, content, parent):
        if message_id not in self.parents:
            self.parents[message_id] = self.head if parent is AUTO else parent
            self.contents[message_id] = content
            self.pinned = None

    def survivor(self, message_id: str | None, gone: set[str]) -> str | None:
        while message_id is not None and message_id in gone:
            message_id = self.parents[message_id]
        return message_id

    def delete(self, gone):
        head = self.head
        relinked = {
            child: self.survivor(parent, gone)
            for child, parent in self.parents.items()
            if child not in gone
        }
        above_head = self.survivor(head, gone)
        self.parents = relinked
        if head in gone:
            self.pinned = above_head if above_head and not self.children(above_head) else None

    def delete_branch(self, top):
        self.delete({name for name in self.parents if top in self.path(name)})


class TreeMachine(RuleBasedStateMachine):
    """Runs every step on both and compares all of both."""

    @initialize()
    def start(self):
        self.loop = asyncio.new_event_loop()
        self.store = SqliteStore(":memory:")
        self.run(self.store.open())
        self.session = Session(self.store, "agent")
        self.model = Model()

    def run(self, work):
        return self.loop.run_until_complete(work)

    def teardown(self):
        self.run(self.store.close())
        self.loop.close()

    @rule(name=NAMES, content=CONTENTS, parent=NAMES | st.sampled_from([AUTO, AUTO, None]))
    def append(self, name, content, parent):
        if isinstance(parent, str) and parent not in self.model.parents:
            parent = AUTO
        expected = name not in self.model.parents
        result = self.run(self.session.append_message(text(name, content), parent))
        self.model.append(name, content, parent)
        assert result.inserted == expected

    @rule(name=NAMES, content=CONTENTS)
    def update(self, name, content):
        known = name in self.model.parents
        assert self.run(self.session.update_message(text(name, content))) == known
        if known:
            self.model.contents[name] = content

    @rule(names=st.sets(NAMES, max_size=5))
    def delete(self, names):
        gone = names & self.model.parents.keys()
        assert self.run(self.session.delete_messages(sorted(names))) == len(gone)
        self.model.delete(gone)

    @rule(name=NAMES)
    def delete_branch(self, name):
        before = len(self.model.parents)
        if name in self.model.parents:
            self.model.delete_branch(name)
        deleted = self.run(self.session.delete_branch(name))
        assert deleted == before - len(self.model.parents)

    @rule(name=NAMES)
    def set_active_leaf(self, name):
        if name in self.model.parents:
            self.run(self.session.set_active_leaf(name))
            self.model.pinned = name

    @rule(names=st.lists(NAMES, max_size=3, unique=True), content=CONTENTS)
    def add_chain(self, names, content):
        self.run(self.session.add_messages([text(name, content) for name in names]))
        above = AUTO
        for name in names:
            self.model.append(name, content, above)
            above = name

    @invariant()
    def the_head_is_the_same(self):
        head = self.run(self.session.get_head())
        assert (head.id if head else None) == self.model.head

    @invariant()
    def every_path_has_the_same_messages_depths_and_sums(self):
        for name in self.model.parents:
            expected = self.model.path(name)
            rows = self.run(self.session.history.path(name))
            assert [row.id for row in rows] == expected
            drafts = [make_draft(text(each, self.model.contents[each])) for each in expected]
            assert rows[-1].depth == len(expected)
            assert rows[-1].cum_bytes == sum(draft.bytes for draft in drafts)
            assert rows[-1].cum_tokens == sum(draft.tokens for draft in drafts)

    @invariant()
    def branches_and_contents_are_the_same(self):
        for name in [None, *self.model.parents]:
            branches = self.run(self.session.get_branches(name))
            assert ids(branches) == self.model.children(name)
            texts = [message["parts"][0]["text"] for message in branches]
            assert texts == [self.model.contents[message["id"]] for message in branches]


TreeMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestTheTreeAgainstAModel = TreeMachine.TestCase
