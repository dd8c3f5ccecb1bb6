"""What is shipped for running a server: an image, a unit and a page. Each is read as what it is for, and held to what it promises."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from typer.main import get_command

from evidentia.serving.cli.app import app
from evidentia.serving.hosting.door_metrics import DoorMetrics

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
UNIT = ROOT / "deploy" / "evidentia.service"
PAGE = ROOT / "docs" / "operations.md"
MAX_EXPOSED = 2.0
"""Of 10, by `systemd-analyze security`."""


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with what follows each."""
    text = re.sub(r"\\\n", " ", "\n".join(line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")))
    return [(line.split()[0], line.split(maxsplit=1)[1].strip()) for line in text.splitlines() if line.strip()]


def of(name: str) -> list[str]:
    return [rest for instruction, rest in instructions() if instruction == name]


def options_of(words: list[str]) -> list[str]:
    return [word for word in words if word.startswith("--")]


def serve_options() -> set[str]:
    serve = get_command(app).commands["serve"]  # type: ignore[attr-defined] # it is a group
    return {name for parameter in serve.params for name in parameter.opts}


# --- the image ---


def test_the_image_is_built_in_one_stage_and_run_in_another_of_a_named_version() -> None:
    images = [each.split()[0] for each in of("FROM")]

    assert 2 == len(images)
    assert all(re.fullmatch(r"python:3\.\d+-slim-\w+", image) for image in images)


def test_the_image_runs_as_nobody_in_particular() -> None:
    (user,) = of("USER")
    last = max(place for place, (name, _) in enumerate(instructions()) if name == "USER")

    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    assert not any(name in {"RUN", "COPY", "ADD"} for name, _ in instructions()[last:])


def test_the_image_takes_nothing_from_the_repository_that_it_does_not_need() -> None:
    copied = [shlex.split(each)[:-1] for each in of("COPY")]
    ignored = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text().splitlines()

    assert [["pyproject.toml", "README.md", "LICENSE"], ["src"], ["--from=build", "/opt/evidentia"]] == copied
    assert [] == of("ADD")
    assert ["*", *(f"!{name}" for name in ("pyproject.toml", "README.md", "LICENSE", "src"))] == ignored[:5]
    assert all((ROOT / name).exists() for name in ("pyproject.toml", "README.md", "LICENSE", "src"))


def test_the_image_holds_no_secret_and_prints_none() -> None:
    text = DOCKERFILE.read_text()

    assert not re.search(r"(?i)(password|secret|api_key|master_key)", text)
    assert "--token-file" in text


def test_the_image_asks_itself_whether_it_lives() -> None:
    (check,) = of("HEALTHCHECK")

    assert "EVIDENTIA_HEALTH_URL" in check
    assert any("http://127.0.0.1:8321/live" in each for each in of("ENV"))


def test_the_command_of_the_image_has_options_that_there_are() -> None:
    (command,) = of("CMD")
    words = [word.strip('", []') for word in command.split(",")]

    assert "serve" == words[0]
    assert options_of(words)
    assert serve_options() >= set(options_of(words))


# --- the unit ---


def section(name: str) -> dict[str, list[str]]:
    """Return the lines of a section of the unit; a name may stand there twice."""
    found: dict[str, list[str]] = {}
    present = ""
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            present = line.strip("[]")
        elif present == name and "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_the_unit_is_read_by_others_as_it_is_meant() -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # as the documentation of the module has it
    parser.read(UNIT)

    assert ["Unit", "Service", "Install"] == parser.sections()


def test_the_unit_starts_reloads_and_stops_the_server_as_it_can_be() -> None:
    service = section("Service")
    words = shlex.split(service["ExecStart"][0])

    assert "serve" == words[1]
    assert "--workers" in words
    assert serve_options() >= set(options_of(words))
    assert ["/bin/kill -HUP $MAINPID"] == service["ExecReload"]
    assert ["mixed"] == service["KillMode"]
    assert "root" not in service["User"]


def test_the_unit_takes_away_what_the_server_does_not_need() -> None:
    service = section("Service")
    yes = ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "ProtectKernelTunables", "RestrictSUIDSGID", "LockPersonality")

    assert {name: ["yes"] for name in yes} == {name: service.get(name) for name in yes}
    assert ["strict"] == service["ProtectSystem"]
    assert [""] == service["CapabilityBoundingSet"]
    assert ["AF_INET AF_INET6 AF_UNIX"] == service["RestrictAddressFamilies"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit_and_finds_little_exposed(tmp_path: Path) -> None:
    command = tmp_path / "evidentia"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/evidentia/bin/evidentia", str(command)))
    verified = subprocess.run(["systemd-analyze", "verify", str(copy)], check=False, capture_output=True, text=True)
    told = subprocess.run(["systemd-analyze", "security", "--offline=true", str(copy)], check=False, capture_output=True, text=True).stdout
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", told)

    assert (0, "") == (verified.returncode, verified.stderr)
    assert exposure is not None
    assert MAX_EXPOSED >= float(exposure[1])


# --- the page ---


def test_every_series_is_on_the_page() -> None:
    DoorMetrics.shared()
    series = {
        f"{metric.name}_total" if metric.type == "counter" else metric.name
        for metric in REGISTRY.collect()
        if metric.name.startswith("evidentia_door_")
    }

    assert 4 == len(series)
    assert all(f"| `{name}` |" in PAGE.read_text() for name in series)


def test_every_option_of_the_command_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`(--[a-z-]+)", PAGE.read_text()))

    assert serve_options() >= named - {"--base"}
    assert {"--workers", "--drain", "--certificate", "--grpc-port", "--allow-host", "--token-file", "--durable"} <= named


def test_the_page_has_one_sentence_a_line() -> None:
    prose = re.sub(r"```.*?```", "", PAGE.read_text(), flags=re.DOTALL)
    lines = [line for line in prose.splitlines() if line and not line.startswith(("|", "#"))]

    assert [] == [
        line for line in lines if re.search(r"[.:;] [A-Z]", re.sub(r"`[^`]*`", "", line)) and ". " in line and not line[0].isdigit()
    ]
