"""What a text is made of is told by how it looks, in integers, the same every time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.search import ContentFeatures
from evidentia.contracts.vocabulary import ContentType
from evidentia.text.features import FEATURE_COUNT, content_features, measure, of_type

PROSE = """The harbour was quiet that morning, and the boats lay where they had been left.
Nobody went out before noon; make sure that the ropes hold, said the old man, for the wind may turn.
From here on the road goes up. If you find the time, let us walk with the others: it is not far.
"""
CODE = """def rotate(keys: list[str], *, by: int = 1) -> list[str]:
    if not keys:
        return []
    shift = by % len(keys)
    for key in keys:
        store.put(key, value=None)
    return keys[shift:] + keys[:shift]
"""
BRACES = """public static int parse(String text) {
    for (int i = 0; i < text.length(); i++) {
        total += text.charAt(i);
    }
    return total;
}
"""
COMMANDS = """$ kubectl get pods --all-namespaces
sudo systemctl restart nginx
docker run -it --rm ubuntu
git push origin main
curl -s https://example.org/health | jq .
"""
CONFIGURATION = """[server]
host = "127.0.0.1"
port: 8080
debug: false
LOG_LEVEL=info
  retries: 3
"name": "evidentia",
"""


def _largest(text: str) -> str:
    found = dict(zip(("code", "commands", "configuration"), measure(text), strict=False))
    return max(found, key=lambda name: found[name]) if any(found.values()) else "nothing"


@pytest.mark.parametrize(
    ("text", "kind"),
    [(PROSE, "nothing"), (CODE, "code"), (BRACES, "code"), (COMMANDS, "commands"), (CONFIGURATION, "configuration")],
)
def test_each_kind_of_text_is_told_from_the_others(text: str, kind: str) -> None:
    assert kind == _largest(text)
    assert kind == "nothing" or max(measure(text)[:3]) > 190


@pytest.mark.parametrize(
    ("language", "kind"),
    [("python", "code"), ("bash", "commands"), ("yaml", "configuration"), ("", "code")],
)
def test_the_language_of_a_fenced_block_decides(language: str, kind: str) -> None:
    assert kind == _largest(f"```{language}\nwhatever stands here\nand here\n```\nProse.")


def test_what_follows_a_fenced_block_is_outside_of_it() -> None:
    text = f"Try:\n\n```bash\nls\n```\n{PROSE}"
    code, commands, _, _ = measure(text)

    assert 0 == code
    assert 0 < commands < 20


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Run `kubectl get pods` first.", "commands"),
        ("Call `rotate` first.", "code"),
        ("It is `open", "nothing"),
        ("make sure that it is closed", "nothing"),
        ("make -j4 all", "commands"),
        ("find ./src -name x", "commands"),
        ("find the key", "nothing"),
        ("git is a tool for versions", "nothing"),
        ("Note: important", "nothing"),
        ("The answer is this: it depends", "nothing"),
        ("as follows:", "nothing"),
        ("import taxes were raised in the spring.", "nothing"),
        ("import os", "code"),
        ("SELECT name FROM users", "code"),
    ],
)
def test_a_line_is_told_by_how_it_begins(text: str, kind: str) -> None:
    assert kind == _largest(text)


def test_numbers_identifiers_and_names_make_a_text_specific() -> None:
    vague = "it is often said that things may be better when they are done in some other way than before"
    some = "In May the port of Hamburg had 12 cranes, and the old quay was still closed to most of the larger boats"
    exact = "Set EVIDENTIA_HOME=/srv on node-7 (10.0.0.7), restart HTTPServer2 at 14:05 UTC, expect RPO_15 and IL-6"

    assert 0 == measure(vague)[3]
    assert measure(vague)[3] < measure(some)[3] < measure(exact)[3]
    assert 255 == measure(exact)[3]


def test_a_sentence_is_not_specific_for_beginning_with_a_capital() -> None:
    assert 0 == measure("The boats are out. The harbour is quiet. The wind may turn.")[3]


@pytest.mark.parametrize(
    ("content_type", "field"), [(ContentType.CODE, "code"), (ContentType.SCHEMA, "code"), (ContentType.CONFIG, "configuration")]
)
def test_what_a_document_is_for_counts_where_its_text_does_not_show_it(content_type: ContentType, field: str) -> None:
    assert 128 == getattr(content_features("plain words", content_type), field)
    assert ContentFeatures(code=200, configuration=200) == of_type(ContentFeatures(code=200, configuration=200), content_type)


@pytest.mark.parametrize("content_type", list(ContentType))
def test_other_kinds_of_documents_say_nothing_about_their_text(content_type: ContentType) -> None:
    found = content_features(PROSE, content_type)
    says = content_type in (ContentType.CODE, ContentType.SCHEMA, ContentType.CONFIG)

    assert says == (found != content_features(PROSE, ContentType.DOCUMENTATION))
    assert measure(PROSE)[3] == found.specificity


@given(st.text(max_size=300) | st.lists(st.sampled_from([*CODE.split(), "```", "`", "\n", "=", "{", ";", "(", "key:", "$ "])).map(" ".join))
def test_any_text_gives_four_bytes_whose_shares_fit_into_the_whole(text: str) -> None:
    found = measure(text)

    assert FEATURE_COUNT == len(found)
    assert all(0 <= each <= 255 for each in found)
    assert sum(found[:3]) <= 255
    assert found == measure(text)


@pytest.mark.parametrize(
    "piece",
    [
        "\n",
        "`",
        "`" + "a" * 199,
        "A",
        "a=(",
        "SELECT " + "a" * 200 + "\n",
        "a(" * 100 + "\n",
        "```\n",
        "<a ",
        '"',
        "[",
        "return ((x\n",
        "a = x\n",
        "~~~",
    ],
)
def test_hostile_repetition_ends(piece: str) -> None:
    found = measure(piece * (1_000_000 // len(piece)))

    assert all(0 <= each <= 255 for each in found)
