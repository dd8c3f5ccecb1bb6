"""Ignore patterns mean what git says they mean."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evidentia.ingest.ignore import IgnoreRules, is_ignored_name, parse_patterns

if TYPE_CHECKING:
    from pathlib import Path


def ignores(patterns: list[str], path: str, *, is_directory: bool = False) -> bool:
    return IgnoreRules().extended(parse_patterns(patterns), depth=0).ignores(path.split("/"), is_directory=is_directory)


@pytest.mark.parametrize(
    ("patterns", "path", "expected"),
    [
        (["*.log"], "deep/down/x.log", True),
        (["*.log", "!keep.log"], "keep.log", False),
        (["!keep.log", "*.log"], "keep.log", True),
        (["/build"], "build", True),
        (["/build"], "sub/build", False),
        (["doc/frotz"], "a/doc/frotz", False),
        (["build/"], "build", False),
        (["**/foo"], "a/b/foo", True),
        (["**/foo"], "foo", True),
        (["abc/**"], "abc/x/y", True),
        (["abc/**"], "abc", False),
        (["a/**/b"], "a/b", True),
        (["a/**/b"], "a/x/y/b", True),
        (["a/*/b"], "a/x/y/b", False),
        (["foo?"], "foo/", False),
        (["[a-c].txt"], "b.txt", True),
        (["[!a-c].txt"], "b.txt", False),
        (["[[:digit:]].txt"], "7.txt", True),
        ([r"\#x"], "#x", True),
        (["#x"], "#x", False),
        ([r"\!x"], "!x", True),
        ([r"x\ "], "x ", True),
        (["x "], "x", True),
        (["a[b"], "a[b", False),
        (["**"], "anything/here", True),
        (["", "   ", "/"], "x", False),
    ],
)
def test_a_pattern_names_what_git_says(patterns: list[str], path: str, expected: bool) -> None:  # noqa: FBT001
    assert expected == ignores(patterns, path)


def test_a_directory_pattern_names_directories_only() -> None:
    assert ignores(["build/"], "sub/build", is_directory=True)
    assert not ignores(["build/"], "sub/build", is_directory=False)


def test_patterns_of_a_deeper_directory_win_and_are_relative_to_it() -> None:
    rules = IgnoreRules().extended(parse_patterns(["*.md"]), depth=0).extended(parse_patterns(["!/a.md"]), depth=1)

    assert not rules.ignores(("sub", "a.md"), is_directory=False)
    assert rules.ignores(("sub", "deeper", "a.md"), is_directory=False)


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    started = time.process_time()
    matched = ignores(["*a" * 400 + "b", "**/" * 300 + "b"], "a" * 250)

    assert not matched
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("name", [".git", ".env", "node_modules", "__pycache__", "evidentia.toml", "notes.md~", "x.swp", "#x#"])
def test_names_that_are_never_ingested(name: str) -> None:
    assert is_ignored_name(name)


SEGMENT = st.text(alphabet="ab*?", min_size=1, max_size=4)
PATTERN = st.builds(
    lambda negated, lead, segments, tail: ("!" if negated else "") + lead + "/".join(segments) + tail,
    st.booleans(),
    st.sampled_from(["", "/", "**/"]),
    st.lists(st.one_of(SEGMENT, st.just("**")), min_size=1, max_size=3),
    st.sampled_from(["", "/", "/**"]),
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@settings(max_examples=60, deadline=None)
@given(patterns=st.lists(PATTERN, min_size=1, max_size=4))
def test_git_itself_agrees(repository: Path, patterns: list[str]) -> None:
    # Behind a literal, git takes `**` for a directory wildcard, against its own manual; we follow the manual.
    assume(not any(re.search(r"[^/*!]\*\*", pattern) for pattern in patterns))
    paths = ["a", "ab", "b/a", "a/b", "a/b/ab", "b/a/a/b", "aa/bb/a"]
    (repository / ".gitignore").write_text("\n".join(patterns) + "\n")
    asked = subprocess.run(
        ["git", "-C", str(repository), "check-ignore", "--no-index", "--stdin"],
        input="\n".join(paths),
        capture_output=True,
        text=True,
        check=False,
    )
    rules = IgnoreRules().extended(parse_patterns(patterns), depth=0)

    def is_kept_out(path: str) -> bool:
        parts = path.split("/")
        above = any(rules.ignores(parts[:depth], is_directory=True) for depth in range(1, len(parts)))
        return above or rules.ignores(parts, is_directory=False)

    assert asked.stdout.split() == [path for path in paths if is_kept_out(path)]
