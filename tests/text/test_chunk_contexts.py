"""A chunk's context: path, title, and the headings or definitions in force where it begins."""

from __future__ import annotations

import re

import pytest

from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.ids import SourceId
from evidentia.contracts.vocabulary import ContentType
from evidentia.text.contexts import MAX_PART_CHARS, MAX_PARTS, ContextFacts, contexts_of

GUIDE = """# Keys

How keys live.

## Rotation

Every key has an age.

```
# not a heading
```

### Staging #

Keys of staging are younger.

## Backup

Backups hold no keys.
"""
CODE = """import os

class TokenStore:
    limit = 3

    def rotate(self, *, age: int) -> None:
        if age:
            self.write(
                age,
            )
        # a comment
        self.note()

    other = 4

func (s *Store) Forget(name string) {
    s.drop(name)
}
done()
"""


def facts(title: str = "", path: str = "", content_type: ContentType = ContentType.DOCUMENTATION) -> ContextFacts:
    return ContextFacts.of(DocumentMetadata(source_id=SourceId("s"), title=title, path=path, content_type=content_type))


def by_line(text: str, known: ContextFacts) -> dict[str, tuple[str, ...]]:
    """Return the context of each line that is not blank, were it a chunk."""
    spans = [found.span() for found in re.finditer(r"[^\n]+", text)]
    return {text[start:end].strip(): context for (start, end), context in zip(spans, contexts_of(text, spans, known), strict=True)}


def test_a_chunk_stands_under_the_headings_before_it_the_innermost_first() -> None:
    found = by_line(GUIDE, facts())

    assert ("Staging", "Rotation", "Keys") == found["Keys of staging are younger."]
    assert ("Rotation", "Keys") == found["Every key has an age."]
    assert ("Backup", "Keys") == found["Backups hold no keys."]


def test_a_chunk_that_begins_with_a_heading_stands_under_what_is_above_it() -> None:
    found = by_line(GUIDE, facts())

    assert () == found["# Keys"]
    assert ("Keys",) == found["## Backup"]
    assert ("Rotation", "Keys") == found["### Staging #"]


def test_a_number_sign_between_fences_is_no_heading() -> None:
    assert ("Rotation", "Keys") == by_line(GUIDE, facts())["### Staging #"]
    assert all("not a heading" not in context for context in by_line(GUIDE, facts()).values())


def test_a_line_of_code_stands_under_its_function_and_its_class() -> None:
    found = by_line(CODE, facts(path="src/token_store.py", content_type=ContentType.CODE))

    assert ("src/token_store.py", "rotate", "TokenStore") == found["self.note()"] == found["age,"] == found[")"]
    assert ("src/token_store.py", "TokenStore") == found["other = 4"] == found["def rotate(self, *, age: int) -> None:"]
    assert ("src/token_store.py", "Forget") == found["s.drop(name)"]
    assert ("src/token_store.py",) == found["done()"] == found["import os"]


def test_a_title_that_is_a_file_of_code_tells_what_a_record_holds() -> None:
    found = by_line(CODE, facts(title="auth/token_store.py"))

    assert ("auth/token_store.py", "TokenStore") == found["limit = 3"]


def test_configuration_has_no_headings() -> None:
    found = by_line("# a comment\nkey: value\n", facts(path="a.yaml", content_type=ContentType.CONFIG))

    assert ("a.yaml",) == found["key: value"]


@pytest.mark.parametrize(
    ("title", "path", "expected"),
    [
        ("Rotation of keys", "docs/rotation.md", ("docs/rotation.md", "Rotation of keys")),
        ("rotation", "docs/rotation.md", ("docs/rotation.md",)),
        ("rot", "docs/rotation.md", ("docs/rotation.md", "rot")),
        ("the text", "", ()),
        ("", "", ()),
    ],
)
def test_a_title_that_the_text_or_the_path_says_is_not_repeated(title: str, path: str, expected: tuple[str, ...]) -> None:
    assert [expected] == list(contexts_of("This is the text.", [(0, 17)], facts(title, path)))


def test_a_heading_that_is_the_title_counts_once() -> None:
    assert ("Keys", "Rotation") == by_line(GUIDE, facts("Keys"))["Every key has an age."]


def test_contexts_are_bounded() -> None:
    deep = "".join(f"{' ' * depth}class {'x' * 999}\n" for depth in range(99)) + " " * 99 + "end"
    context = by_line(deep, facts("t" * 500, content_type=ContentType.CODE))["end"]

    assert MAX_PARTS == len(context)
    assert {MAX_PART_CHARS} == set(map(len, context))
