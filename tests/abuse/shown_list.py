"""The messages a tab shows, and the rules by which frames change them (spec/01 §9.4).

An answer that streams in this tab is protected: whatever list the server sends, it stays at the
end, and at the end of its stream it goes back behind the message it was anchored to.
"""

from __future__ import annotations

from typing import Any

from tests.abuse.npm_fold import SETTLED, Message, Observed, find_call, index_of


class Protection:
    """The streaming answer stays where it is, whatever list the server sends."""

    def __init__(self, message_id: str, anchor: str | None) -> None:
        self.message_id = message_id
        self.anchor = anchor


class ShownList:
    """The list of one tab."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._protected: Protection | None = None
        self._unsent: set[str] = set()

    @property
    def last(self) -> Message | None:
        """The message at the end."""
        return self.messages[-1] if self.messages else None

    def put(self, message: Message) -> None:
        """Show a message: in its place, or at the end."""
        index = index_of(self.messages, message["id"])
        if index < 0:
            self.messages = [*self.messages, message]
        else:
            self._set(index, message)

    def keep_unsent(self, message_id: str) -> None:
        """A message was written while offline: the transcript at the connect does not have it."""
        self._unsent.add(message_id)

    def replace(self, messages: list[Message], observed: Observed | None, *, connect: bool) -> None:
        """The server's list takes the place of this one."""
        unsent, self._unsent = self._unsent if connect else set[str](), set()
        shown = self._with_protected(messages)
        if observed is not None and observed.parts:
            index = index_of(shown, observed.message_id)
            stored = len(shown[index]["parts"]) if index >= 0 else 0
            if len(observed.parts) >= stored and not observed.diverges_from(shown):
                shown = observed.merged(shown)
        known = {message["id"] for message in shown}
        self.messages = [*shown, *(m for m in self.messages if m["id"] in unsent - known)]

    def update(self, message: Message) -> None:
        """One message has changed; it is found by its id, or by a call it holds."""
        index = index_of(self.messages, message["id"])
        if index < 0:
            calls = _calls(message)
            owners = (i for i, m in enumerate(self.messages) if calls & _calls(m))
            index = next(owners, -1)
        if index >= 0:
            self._set(index, {**message, "id": self.messages[index]["id"]})

    def change_call(self, call_id: str, change: dict[str, Any]) -> None:
        """What answering a call does to it at once, before the server has said anything."""
        for index, message in enumerate(self.messages):
            part = find_call(message["parts"], call_id)
            if part is not None and part["state"] not in SETTLED:
                changed = [{**p, **change} if p is part else p for p in message["parts"]]
                self._set(index, {**message, "parts": changed})
                return

    def empty_tail(self, message_id: str | None) -> None:
        """A replay begins: what it tells again goes."""
        last = self.last
        if last is not None and last["role"] == "assistant" and last["id"] == message_id:
            self._set(len(self.messages) - 1, {**last, "parts": []})

    def forget(self) -> None:
        """The conversation is gone."""
        self.messages = []
        self._protected = None
        self._unsent.clear()

    # Protection

    def protect(self, message_id: str) -> None:
        """An answer begins to stream: it belongs behind what is the last message now."""
        if self._protected is None or self._protected.message_id != message_id:
            index = index_of(self.messages, message_id)
            before = self.messages[:index] if index >= 0 else self.messages
            self._protected = Protection(message_id, before[-1]["id"] if before else None)

    def protect_tail(self) -> None:
        """While an answer streams and a new message is sent, the answer moves behind it."""
        answers = [m for m in self.messages if m["role"] == "assistant"]
        if answers:
            self.protect(answers[-1]["id"])
            self.messages = [*(m for m in self.messages if m is not answers[-1]), answers[-1]]

    def unprotect(self) -> None:
        """The socket is gone: nothing streams here."""
        self._protected = None

    def restore(self, message_id: str | None) -> None:
        """A stream has ended: its answer goes where it belongs."""
        protection = self._protected
        if protection is None or (message_id is not None and protection.message_id != message_id):
            return
        self._protected = None
        index = index_of(self.messages, protection.message_id)
        if index < 0:
            return
        rest = list(self.messages)
        message = rest.pop(index)
        anchor = -1 if protection.anchor is None else index_of(rest, protection.anchor)
        place = 0 if protection.anchor is None else anchor + 1 if anchor >= 0 else index
        rest.insert(place, message)
        self.messages = rest

    def _with_protected(self, messages: list[Message]) -> list[Message]:
        if self._protected is None:
            return list(messages)
        message_id = self._protected.message_id
        index = index_of(messages, message_id)
        if index >= 0 and any(m["role"] == "assistant" for m in messages[index + 1 :]):
            self._protected = None
            return list(messages)
        mine = index_of(self.messages, message_id)
        kept = self.messages[mine] if mine >= 0 else messages[index] if index >= 0 else None
        if kept is None:
            return list(messages)
        return [*(m for m in messages if m["id"] != message_id), kept]

    def _set(self, index: int, message: Message) -> None:
        self.messages = [*self.messages[:index], message, *self.messages[index + 1 :]]


def _calls(message: Message) -> set[str]:
    return {part["toolCallId"] for part in message["parts"] if "toolCallId" in part}
