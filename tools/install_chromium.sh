#!/usr/bin/env bash
# Installs Debian's Chromium for `make test-browser`, where that can be done without asking: as root, with apt-get, and with packages to be had.
# Says nothing unless it fails; the exit code tells whether there is a /usr/bin/chromium in the end.
set -uo pipefail

give_up() {
  echo "note: Chromium was not installed, $1; the tests in a browser are skipped" >&2
  exit 1
}

[ -x /usr/bin/chromium ] && exit 0
command -v apt-get >/dev/null || give_up "there is no apt-get"
[ "$(id -u)" = 0 ] || give_up "only root can"
export DEBIAN_FRONTEND=noninteractive
said=$(apt-get update -qq 2>&1) || give_up "apt-get update failed: $(tail -n 1 <<<"$said")"
said=$(apt-get install -y -qq --no-install-recommends chromium 2>&1) || give_up "apt-get install failed: $(tail -n 1 <<<"$said")"
[ -x /usr/bin/chromium ] || give_up "the package has no /usr/bin/chromium"
