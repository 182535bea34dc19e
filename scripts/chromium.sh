#!/usr/bin/env bash
# Installs the browser that the tests of the console drive: Chromium of the distribution, and fonts for Chinese. Prints the path of
# the browser, and nothing else, on standard output. Does nothing when it is there. Usage: chromium=$(scripts/chromium.sh)
# The headless shell is the same browser without windows: it takes a third less of a processor.
set -euo pipefail
cd "$(dirname "$0")/.."
retry=$PWD/scripts/retry.sh

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

find_browser() {
	command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome
}

if ! find_browser >/dev/null; then
	if ! command -v apt-get >/dev/null; then
		echo "chromium: install Chromium with the package manager of this system, then run this again" >&2
		exit 1
	fi
	echo "installing chromium with apt-get" >&2
	as_root "$retry" apt-get update -qq >&2
	package=chromium-headless-shell
	apt-cache show "$package" >/dev/null 2>&1 || package=chromium
	as_root "$retry" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		"$package" fonts-noto-cjk >&2
fi
find_browser
