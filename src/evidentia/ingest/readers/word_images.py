"""The images of a Word paragraph in the order of its text: drawings and the older VML pictures, in groups and text boxes too.

Refuses to follow a link: an image that is not inside the file is counted and left where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidentia.ingest.readers.image_sources import take_related

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docx.text.paragraph import Paragraph

    from evidentia.ingest.readers.images import ImageGatherer, Picture

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_PIC = "{http://schemas.openxmlformats.org/drawingml/2006/picture}"
_VML = "{urn:schemas-microsoft-com:vml}"
_O = "{urn:schemas-microsoft-com:office:office}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_NOT_SHOWN = frozenset({f"{_W}del", f"{_W}moveFrom", f"{_MC}Fallback"})
"""Deleted text, and the second form of a drawing for programs that do not know the first."""
_MARKS = frozenset({f"{_A}blip", f"{_VML}imagedata"})
_OUTER = frozenset({f"{_WP}inline", f"{_WP}anchor", f"{_VML}shape", f"{_VML}group"})
_NAMED = frozenset({f"{_WP}docPr", f"{_PIC}cNvPr"})


class WordImages:
    """Finds the images of paragraphs; `part` is the part of the file whose relations their ids name."""

    def __init__(self, part: object, gatherer: ImageGatherer) -> None:
        self._relations = part.rels  # type: ignore[attr-defined]  # python-docx has no types
        self._gatherer = gatherer

    def of(self, paragraph: Paragraph) -> Iterator[tuple[int, Picture]]:
        """Yield each image with the number of characters of the paragraph before it."""
        from docx.text.hyperlink import Hyperlink
        from docx.text.run import Run

        element = paragraph._p  # noqa: SLF001  # the public interface does not tell where in a paragraph a drawing is
        if next(element.iter(*_MARKS), None) is None:
            return
        kinds: dict[str, Any] = {f"{_W}r": Run, f"{_W}hyperlink": Hyperlink}  # two classes without a common one
        offset = 0
        for child in element:
            kind = kinds.get(child.tag)
            length = len(kind(child, paragraph).text) if kind else 0
            first = next(child.iter(f"{_W}t", *_MARKS), None) if length else None
            place = offset if first is None or first.tag in _MARKS else offset + length
            for picture in self._within(child):
                yield place, picture
            offset += length

    def _within(self, element: Any) -> Iterator[Picture]:  # noqa: ANN401  # lxml has no types
        alt = outer_alt = ""
        waiting = [element]
        while waiting:
            node = waiting.pop()
            if node.tag in _NOT_SHOWN:
                continue
            if node.tag in _OUTER:
                alt = outer_alt = node.get("alt") or ""
            elif node.tag in _NAMED:
                alt = node.get("descr") or node.get("title") or outer_alt
                outer_alt = outer_alt or alt
            elif node.tag in _MARKS:
                picture = self._taken(node, alt or node.get(f"{_O}title") or "")
                if picture is not None:
                    yield picture
            waiting.extend(reversed(node))

    def _taken(self, node: Any, alt: str) -> Picture | None:  # noqa: ANN401  # lxml has no types
        named = node.get(f"{_R}embed") or node.get(f"{_R}id") or node.get(f"{_R}link") or ""
        return take_related(self._gatherer, self._relations, named, alt=alt)
