"""An answer as people and programs want it: for a prompt, as JSON, as a data frame, in a notebook.

Content is hostile wherever it is shown: tags are escaped in a prompt, markup in a notebook.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Self

import msgspec

from evidentia.contracts import evidence as messages
from evidentia.contracts.errors import MissingExtraError
from evidentia.provenance.evidence_tags import TagFacts, render_tag

if TYPE_CHECKING:
    import pandas as pd

    from evidentia.contracts.evidence import EvidenceFragment

_SHOWN_CHARS = 280


class EvidenceResponse(messages.EvidenceResponse, frozen=True, kw_only=True):
    """The answer of `retrieve`; the fields are those of the contract."""

    @classmethod
    def of(cls, message: messages.EvidenceResponse) -> Self:
        """Return a message of the contract in this form."""
        return cls(**{name: getattr(message, name) for name in message.__struct_fields__})

    def to_context(self) -> str:
        """Return the fragments between evidence tags, for a prompt; a search that did not finish in time is said before them."""
        tags = [render_tag(self._facts(fragment, rank=rank), fragment.content) for rank, fragment in enumerate(self.fragments, start=1)]
        return "\n".join([f"Note: {self.unfinished_note}.", *tags] if self.unfinished else tags)

    def to_dict(self) -> dict[str, Any]:  # Any: the values of JSON
        """Return the answer as plain values, times as strings."""
        plain: dict[str, Any] = msgspec.json.decode(self.to_json())
        return plain

    def to_json(self) -> str:
        """Return the answer as JSON that `verify` accepts."""
        return msgspec.json.encode(self).decode()

    def to_pandas(self) -> pd.DataFrame:
        """Return the fragments as a data frame, one row each; needs pandas."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", needed_for="to_pandas") from error
        columns = ("chunk_id", "source_id", "authority_tier", "score", "relevance_score", "confidence", "token_count", "content")
        return pd.DataFrame(
            [[rank, *(getattr(fragment, column) for column in columns)] for rank, fragment in enumerate(self.fragments, start=1)],
            columns=["rank", *columns],
        )

    def _repr_html_(self) -> str:
        """Return a table for a notebook."""
        head = "".join(f"<th>{name}</th>" for name in ("#", "score", "source", "authority", "updated", "content"))
        body = "".join(f"<tr>{self._row(fragment, rank=rank)}</tr>" for rank, fragment in enumerate(self.fragments, start=1))
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.degraded)
        caption = f"{len(self.fragments)} of {self.total_candidates} matching fragments, result {self.result_hash[:16]}"
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def _row(self, fragment: EvidenceFragment, *, rank: int) -> str:
        shown = fragment.content[:_SHOWN_CHARS] + ("…" if len(fragment.content) > _SHOWN_CHARS else "")
        updated = fragment.metadata.get("updated_at", "unknown")[:10]
        score = f"{fragment.score / messages.SCORE_ONE:.2f}"
        cells = (str(rank), score, fragment.document_id, fragment.authority_tier.value, updated, shown)
        return "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)

    def _facts(self, fragment: EvidenceFragment, *, rank: int) -> TagFacts:
        trust, context = fragment.trust_metadata, fragment.retrieval_context
        return TagFacts(
            source=fragment.source_id,
            authority=fragment.authority_tier,
            rank=rank,
            freshness_s=trust.staleness_s if trust else None,
            confidence_percent=round(fragment.confidence * 100),
            retrieval_method=context.retriever_type if context else None,
            is_human_verified=bool(trust and trust.verified_by),
            flags=fragment.flags,
        )
