"""An answer as people and programs want it: for a prompt, as JSON, as a data frame, in a notebook.

Content is hostile wherever it is shown: tags are escaped in a prompt, markup in a notebook.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Self

import msgspec

from evidentia.contracts import evidence as messages
from evidentia.contracts.errors import MissingExtraError
from evidentia.provenance.evidence_tags import DOUBT, facts_of, render_tag
from evidentia.ranking.order_notes import order_notes

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
        """Return the fragments between evidence tags, for a prompt.

        A search that did not finish in time is said before them, and so is it when none of them is likely to be relevant. With a
        `token_budget` it is this text that stays within it.
        """
        tags = [
            render_tag(facts_of(fragment, rank=rank, as_of=self.as_of), fragment.content)
            for rank, fragment in enumerate(self.fragments, start=1)
        ]
        late = f"Note: {self.unfinished_note}.\n" if self.unfinished else ""
        return (late + (DOUBT if self.is_doubtful else "") + "\n".join(tags)).removesuffix("\n")

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
        columns = ("source_id", "document_id", "authority_tier", "chunk_id", "token_count", "content")
        rows = [
            [
                rank,
                round(fragment.confidence, 2),
                fragment.likelihood,
                note,
                round(fragment.relevance_score, 3),
                *(getattr(fragment, column) for column in columns),
            ]
            for rank, (fragment, note) in enumerate(zip(self.fragments, order_notes(self.fragments), strict=True), start=1)
        ]
        return pd.DataFrame(rows, columns=["rank", "confidence", "likelihood", "order", "relevance_score", *columns])

    def _repr_html_(self) -> str:
        """Return a table for a notebook, with what the answer is worth above it."""
        orders = order_notes(self.fragments)
        names = ("#", "confidence", *(("order",) if any(orders) else ()), "source", "authority", "updated", "content")
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = [
            (str(rank), fragment.rating, *((order,) if any(orders) else ()), *_told(fragment))
            for rank, (fragment, order) in enumerate(zip(self.fragments, orders, strict=True), start=1)
        ]
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.degraded)
        verdict = html.escape(self.verdict[:1].upper() + self.verdict[1:])
        count = f"{len(self.fragments)} of {self.total_candidates} matching fragments, result {html.escape(self.result_hash[:16])}"
        caption = f"{verdict}; {count}"
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def _told(fragment: EvidenceFragment) -> tuple[str, ...]:
    shown = fragment.content[:_SHOWN_CHARS] + ("…" if len(fragment.content) > _SHOWN_CHARS else "")
    return fragment.document_id, fragment.authority_tier.value, fragment.metadata.get("updated_at", "unknown")[:10], shown
