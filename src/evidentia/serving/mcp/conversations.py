"""What was retrieved in each session, so that a reply can be checked against it, and the newest receipts of each principal.

Kept in this process only, and bounded: the session that was silent for longest is forgotten first.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evidentia.foundation.lru import LruCache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from evidentia.serving.identity.callers import Caller

MAX_CONVERSATIONS: Final = 1_000
MAX_OF_ONE: Final = MAX_CONVERSATIONS // 4
"""Of one principal, once there are no more places."""
MAX_CALLS: Final = 50
"""Of one conversation; older ones are forgotten."""
MAX_CHARS: Final = 4_000_000
"""Of the results of one conversation."""
MAX_RECEIPTS: Final = 200
"""Of one principal."""

ConversationKey = tuple[bytes, str, str]


class KeptCall(NamedTuple):
    """One retrieval: what was asked and what came back."""

    name: str
    arguments: Mapping[str, Any]  # Any: JSON as the client sent it
    text: str


class KeptReceipt(NamedTuple):
    """That an answer was given, and when."""

    receipt_id: str
    answered_at: datetime
    fragments: int


@dataclass(slots=True)
class ClientConversation:
    """The calls of one conversation, and how far the question reaches that was checked last."""

    calls: list[KeptCall] = field(default_factory=list)
    question: str | None = None
    checked: int = 0

    def add(self, call: KeptCall) -> None:
        """Keep a call; the oldest go when there are too many, or too much."""
        self.calls.append(call)
        while len(self.calls) > 1 and (len(self.calls) > MAX_CALLS or sum(len(each.text) for each in self.calls) > MAX_CHARS):
            del self.calls[0]
            self.checked = max(0, self.checked - 1)

    def calls_for(self, question: str) -> Sequence[KeptCall]:
        """Return the calls that served a question: all since another one was checked last."""
        if self.question is not None and self.question != question:
            del self.calls[: self.checked]
        self.question, self.checked = question, len(self.calls)
        return tuple(self.calls)


class ConversationMemory:
    """The conversations and receipts of everybody who is connected. Not thread safe: it belongs to one event loop."""

    def __init__(self) -> None:
        self._conversations: LruCache[ConversationKey, ClientConversation] = LruCache(MAX_CONVERSATIONS)
        self._receipts: LruCache[bytes, deque[KeptReceipt]] = LruCache(MAX_CONVERSATIONS)

    def conversation(self, caller: Caller, name: str = "") -> ClientConversation:
        """Return a conversation of a caller; an empty one when nothing is known of it."""
        key = (caller.key, caller.session, name)
        found = self._conversations.get(key)
        if found is None:
            found = ClientConversation()
            if len(self._conversations) >= MAX_CONVERSATIONS:
                own = [each for each in self._conversations if each[0] == caller.key]
                if len(own) >= MAX_OF_ONE:  # its own oldest goes, and nobody else's
                    self._conversations.pop(own[0])
            self._conversations.put(key, found)
        return found

    def end(self, caller: Caller) -> None:
        """Forget what belongs to a session that is over."""
        for key in [key for key in self._conversations if key[:2] == (caller.key, caller.session)]:
            self._conversations.pop(key)

    def note_receipt(self, caller: Caller, receipt: KeptReceipt) -> None:
        """Remember that a principal was given a receipt."""
        kept = self._receipts.get(caller.key)
        if kept is None:
            kept = deque(maxlen=MAX_RECEIPTS)
            self._receipts.put(caller.key, kept)
        kept.appendleft(receipt)

    def receipts(self, caller: Caller) -> Sequence[KeptReceipt]:
        """Return the receipts of a principal, the newest first."""
        return tuple(self._receipts.get(caller.key) or ())
