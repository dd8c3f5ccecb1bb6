"""One turn of a chat in the dialect of OpenAI: instructions and material go in, the words of the first choice come out."""

from __future__ import annotations

import msgspec


class _Message(msgspec.Struct):
    content: str


class _Choice(msgspec.Struct):
    message: _Message


class _Reply(msgspec.Struct):
    choices: list[_Choice]


def chat_body(model: str, *, instructions: str, material: object) -> bytes:
    """Return the body of a request at temperature 0; the material is shown as one JSON text. UnicodeEncodeError when it has none."""
    shown = msgspec.json.encode(material).decode()
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": shown}]
    return msgspec.json.encode({"model": model, "messages": messages, "temperature": 0, "stream": False})


def chat_content(reply: bytes) -> str:
    """Return what the model said; ValueError, IndexError or RecursionError when the reply has another form."""
    return msgspec.json.decode(reply, type=_Reply).choices[0].message.content
