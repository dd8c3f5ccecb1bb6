#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment without extras, and takes files in and asks a question with it.
# The question shares no word with the text that answers it, so the encoder has to have come along.
# Nothing of the checkout is within reach: the commands run in a temporary directory, and that is all that is written to.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONPATH EVIDENTIA_BASE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/empty"
pip() { "$work/empty/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
pip wheel --no-deps --wheel-dir "$work" .
pip install "$work"/evidentia-*.whl

cd "$work"
PATH="$work/empty/bin:$PATH"
mkdir handbook
echo "The pager changes hands on Mondays at 09:00 UTC." >handbook/on-call.md
echo "Signing keys are rotated every 30 days." >handbook/keys.md
python -c 'import evidentia, sys; assert evidentia.__file__.startswith(sys.prefix), evidentia.__file__'
evidentia init --quiet
evidentia ingest handbook --quiet
evidentia verify --quiet
evidentia doctor
found=$(evidentia search "which weekday does somebody else become responsible for alerts?" --deadline-ms 20000 --json |
  python -c 'import json, sys; print(json.load(sys.stdin)["fragments"][0]["document_id"])')
[ "$found" = "documents:on-call.md" ] || { echo "the first fragment is of '$found', not of 'documents:on-call.md'" >&2; exit 1; }
echo "$(basename "$work"/evidentia-*.whl), installed by $(python --version): the answer is in $found"
