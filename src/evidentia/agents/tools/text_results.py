"""Fragments as the text of `rag_retrieve`: how to cite, then each piece with its file, its pages and its images in place.

Whatever comes from documents is neutralised, so that none of it can be read as a mark, a citation or an instruction of ours.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from evidentia.agents.citations import escape
from evidentia.agents.tools.results import NOTHING_FOUND, ToolResult, failure
from evidentia.contracts.layout import IMAGE_SCHEME
from evidentia.text.blocks import image_spans
from evidentia.text.marks import INSTRUCTION, RAG_BEGIN, RAG_END, neutral_line, neutralise
from evidentia.text.prompt_injection import ACTIVE_MARKUP, INSTRUCTION_LIKE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.evidence import EvidenceFragment
    from evidentia.contracts.layout import FragmentImage

CITE_TEXT: Final = (
    f'{INSTRUCTION} Cite what you use as <CITATION file="FILE" filename="NAME" page=N /> directly after the paragraph or list that uses it:'
    " one or two each, never collected at the end. FILE, NAME and N are those of the piece of evidence."
)
SHOW_IMAGES: Final = f"{INSTRUCTION} Show each image next to the text it belongs to, as it stands here."
_SHOWN_FLAGS: Final = (INSTRUCTION_LIKE, ACTIVE_MARKUP)
_NEAREST_WORDS: Final = 12
"""The end of an image's nearest text by which its place is found."""


def text_result(fragments: Sequence[EvidenceFragment], *, receipt_id: str | None) -> ToolResult:
    """Return the fragments in order, or that there are none."""
    if not fragments:
        return failure(NOTHING_FOUND)
    images = tuple(image for fragment in fragments for image in fragment.images)
    pieces = (_piece(fragment, number=number) for number, fragment in enumerate(fragments, start=1))
    lines = [CITE_TEXT, *([SHOW_IMAGES] if images else ()), RAG_BEGIN, *pieces, RAG_END]
    return ToolResult(text="\n".join(lines), fragments=tuple(fragments), receipt_id=receipt_id, images=images)


def file_name(fragment: EvidenceFragment) -> str:
    """Return what people call the file: the last part of its path, or of its id."""
    path = fragment.metadata.get("path") or fragment.document_id.partition(":")[2] or fragment.document_id
    return PurePosixPath(path).name or path


def _piece(fragment: EvidenceFragment, *, number: int) -> str:
    pages = fragment.pages or (0,)
    spread = f" pages=[{', '.join(str(page) for page in pages)}]" if len(pages) > 1 else ""
    flags = [flag for flag in fragment.flags if flag in _SHOWN_FLAGS]
    flagged = f' flags="{" ".join(flags)}"' if flags else ""
    file = f'file="{escape(fragment.document_id)}" filename="{escape(file_name(fragment))}"'
    heading = f"### [{number}] {file} page={pages[0]}{spread}{flagged}"
    return f"{heading}\n{_illustrated(fragment)}"


def _illustrated(fragment: EvidenceFragment) -> str:
    """Return the text with its images: each in the place of the reference that names it, else after the line that ends its nearest text.

    Images that share a place keep their order.
    """
    places: dict[tuple[int, int], list[FragmentImage]] = {}
    named = {target: (start, stop) for start, stop, target in image_spans(fragment.content)} if fragment.images else {}
    for image in fragment.images:
        end = _place(fragment.content, image.nearest_text)
        places.setdefault(named.get(image.name, (end, end)), []).append(image)
    parts, start = [], 0
    for (begin, stop), images in sorted(places.items(), key=lambda each: each[0]):
        parts += [neutralise(fragment.content[start:begin]).rstrip("\n"), *(_shown(image) for image in images)]
        start = max(start, stop)
    rest = neutralise(fragment.content[start:]).strip("\n")
    return "\n".join([*(part for part in parts if part), *([rest] if rest else ())])


def _shown(image: FragmentImage) -> str:
    alt = neutral_line(image.alt or image.name).replace("[", "(").replace("]", ")")
    return f"![{alt}]({IMAGE_SCHEME}{image.image_hash})"


def _place(content: str, nearest: str) -> int:
    """Return where an image goes: behind the line in which its nearest text ends, or at the end where that is not found."""
    words = nearest.split()[-_NEAREST_WORDS:]
    found = re.search(r"\s+".join(re.escape(word) for word in words), content) if words else None
    if found is None:
        return len(content)
    line_end = content.find("\n", found.end())
    return len(content) if line_end < 0 else line_end
