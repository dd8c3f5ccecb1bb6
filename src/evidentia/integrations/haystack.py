"""Haystack: a base as a component of a pipeline, and a retriever component as a source of a base.

Annotations are evaluated here, since Haystack reads the sockets of a component from them.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from evidentia.base.answers import EvidenceResponse
from evidentia.contracts.errors import InvalidFieldError, MissingExtraError
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicates import And
from evidentia.integrations.base_client import Asker, GivenBase, GivenPrincipal
from evidentia.integrations.fragment_metadata import account_of, score_of
from evidentia.integrations.haystack_filters import predicate_of
from evidentia.integrations.proposals import AsyncSource, BlockingSource, Proposal

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise MissingExtraError("haystack", needed_for="evidentia.integrations.haystack") from error


@component
class EvidentiaRetriever:
    """Retrieves evidence from a base, in sync and async pipelines.

    `request` takes the other fields of a request, such as `filter`. A base that is given as a path is opened as its owner: name a
    `principal` to answer as somebody else.
    """

    def __init__(
        self,
        base: GivenBase,
        *,
        top_k: int | None = None,
        token_budget: int | None = None,
        principal: GivenPrincipal | None = None,
        request: Mapping[str, Any] | None = None,  # Any: the values of a request's fields
    ) -> None:
        self.base = base
        self.top_k = top_k
        self.token_budget = token_budget
        self.principal = principal
        self.request = dict(request or {})
        self._asker = Asker(base)

    def warm_up(self) -> None:
        """Open a base that was given as a path, unless it is open."""
        self._asker.open()

    def close(self) -> None:
        """Close a base that was given as a path; one that was given open stays open."""
        self._asker.close()

    @component.output_types(documents=list[Document], receipt_id=str | None, degraded=list[str])
    def run(self, query: str, top_k: int | None = None, filters: dict[str, Any] | None = None) -> dict[str, Any]:  # Any: Haystack's own
        """Return evidence as documents, with the receipt of the answer and what it had to do without.

        Filters of Haystack narrow the one in `request`, if there is one.
        """
        return _outputs(self._asker.ask(query, self._fields(top_k=top_k, filters=filters)))

    @component.output_types(documents=list[Document], receipt_id=str | None, degraded=list[str])
    async def run_async(self, query: str, top_k: int | None = None, filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Do what `run` does, and leave the event loop free meanwhile."""
        return _outputs(await self._asker.ask_async(query, self._fields(top_k=top_k, filters=filters)))

    def to_dict(self) -> dict[str, Any]:  # Any: Haystack's own
        """Return the component as a pipeline's file keeps it.

        A base that was given open is refused: it acts for somebody, and a file that named its path alone would act for its owner.
        """
        if not isinstance(self.base, str | Path):
            raise InvalidFieldError("base", "an open base cannot be written to a file; give its path, and the principal it answers as")
        written: dict[str, Any] = default_to_dict(  # Any: Haystack's own
            self,
            base=str(self.base),
            top_k=self.top_k,
            token_budget=self.token_budget,
            principal=_plain(self.principal),
            request=_plain(self.request),
        )
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "EvidentiaRetriever":  # Any: Haystack's own
        """Return the component that a file keeps; its base is opened when it is needed."""
        read: EvidentiaRetriever = default_from_dict(cls, data)
        return read

    def _fields(self, *, top_k: int | None, filters: dict[str, Any] | None) -> dict[str, object]:  # Any: Haystack's own
        limit = self.top_k if top_k is None else top_k
        own = {"limit": limit, "token_budget": self.token_budget, "principal": self.principal, "filter": self._narrowed(filters)}
        return self.request | {name: value for name, value in own.items() if value is not None}

    def _narrowed(self, filters: dict[str, Any] | None) -> object:  # Any: Haystack's own
        own = self.request.get("filter")
        if not filters:
            return own
        if own is None:
            return predicate_of(filters)
        tree = parse(own) if isinstance(own, str) else own
        return msgspec.to_builtins(And((tree, predicate_of(filters))))


def as_source(retriever: object, *, on_thread: bool = False) -> AsyncSource | BlockingSource:
    """Return a retriever component that is asked with a `query` as what `base.add_source` takes.

    One with `run_async` is asked on the event loop, unless `on_thread`: some say they are async and block, and some belong to the
    loop they were made on. Others are asked on a thread.
    """
    run, run_async = getattr(retriever, "run", None), getattr(retriever, "run_async", None)
    inputs = inspect.signature(run).parameters if callable(run) else {}
    if not callable(run) or "query" not in inputs:
        raise InvalidFieldError("retriever", f"expected a component that is run with a 'query', got {type(retriever).__name__}")
    limits = _takes_limit(inputs)
    if not callable(run_async) or on_thread:
        return BlockingSource(lambda query, limit: _run(retriever, run, limits(query, limit)))

    async def find(query: str, limit: int) -> Iterable[Proposal]:
        await _warm_up(retriever)
        return _proposals(await run_async(**limits(query, limit)))

    return AsyncSource(find)


def _outputs(response: EvidenceResponse) -> dict[str, Any]:  # Any: Haystack's own
    documents = [
        Document(id=fragment.chunk_id, content=fragment.content, meta=account_of(fragment, response), score=score_of(fragment))
        for fragment in response.fragments
    ]
    return {"documents": documents, "receipt_id": response.receipt_id, "degraded": list(response.degraded)}


def _plain(value: object) -> object:
    """Return a value in the terms of JSON, which is what a file can hold."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _takes_limit(inputs: Mapping[str, inspect.Parameter]) -> Callable[[str, int], dict[str, object]]:
    if "top_k" in inputs:
        return lambda query, limit: {"query": query, "top_k": limit}
    return lambda query, _: {"query": query}


def _run(retriever: object, run: Callable[..., Mapping[str, Any]], arguments: Mapping[str, object]) -> Iterable[Proposal]:
    if callable(warm_up := getattr(retriever, "warm_up", None)):
        warm_up()
    return _proposals(run(**arguments))


async def _warm_up(retriever: object) -> None:
    """Warm a component up as a pipeline does, before every run."""
    if callable(warm_up_async := getattr(retriever, "warm_up_async", None)):
        await warm_up_async()
    elif callable(warm_up := getattr(retriever, "warm_up", None)):
        warm_up()


def _proposals(outputs: Mapping[str, Any]) -> Iterable[Proposal]:  # Any: Haystack's own
    documents: Iterable[Document] = outputs["documents"]
    for document in documents:
        yield Proposal(content=document.content or "", own_id=document.id, score=document.score, metadata=document.meta)
