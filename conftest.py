"""Runs the examples of README.md and docs as tests: `python` fences are executed, `pycon` fences are compared with what they show.

A page is one test, since its examples build on each other, and it runs in a temporary directory, where it may make files and bases.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sybil import Document
from sybil.evaluators.doctest import DocTestEvaluator
from sybil.example import SybilFailure
from sybil.parsers.abstract.doctest import DocTestStringParser
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sybil import Region

ROOT = Path(__file__).resolve().parent


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Page | None:
    """Take README.md and every Markdown file under docs."""
    is_page = file_path == ROOT / "README.md" or (file_path.suffix == ".md" and ROOT / "docs" in file_path.parents)
    return Page.from_parent(parent, path=file_path) if is_page else None


class Page(pytest.File):
    """A page of documentation."""

    def collect(self) -> Iterator[PageExamples]:
        """Yield one test, or none for a page without examples."""
        document = Document.parse(str(self.path), PythonCodeBlockParser(), parse_sessions)
        if document.regions:
            yield PageExamples.of_document(self, document)


class PageExamples(pytest.Item):
    """All examples of a page, in order."""

    document: Document

    @classmethod
    def of_document(cls, parent: Page, document: Document) -> PageExamples:
        """Return the test of a page."""
        item: PageExamples = cls.from_parent(parent, name="examples")
        item.document = document
        return item

    def runtest(self) -> None:
        """Run the examples, the later ones with the names of the earlier ones."""
        with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
            for example in self.document.examples():
                example.evaluate()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """Show the example that failed and what it gave; a raised error keeps its trace."""
        del style
        if isinstance(excinfo.value, SybilFailure):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Name the page."""
        return self.path, 0, f"examples of {self.path.name}"


_sessions = CodeBlockParser("pycon", DocTestEvaluator())
_examples = DocTestStringParser()


def parse_sessions(document: Document) -> Iterable[Region]:
    """Yield the examples inside the `pycon` fences of a page."""
    for fence in _sessions(document):
        source = fence.parsed
        for example in _examples(source, document.path):
            example.adjust(fence, source)
            yield example
