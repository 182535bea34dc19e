#!/usr/bin/env bash
# Brings mypy, which checks the types of the Python SDK, in the version that is pinned here. Prints the directory that Python finds it
# in, and nothing else, on standard output. Does nothing when it is there. Usage: PYTHONPATH=$(scripts/mypy.sh) python3 -m mypy
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.18.2 # the newest that checks for Python 3.9, the oldest that the SDK runs on
cache=$PWD/.cache/mypy
target=$cache/$version-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')

if [ ! -d "$target" ]; then
	python3 -m pip --version >/dev/null 2>&1 || { echo "mypy: install pip for python3, then run this again" >&2; exit 1; }
	echo "installing mypy $version" >&2
	mkdir -p "$cache"
	temporary=$(mktemp -d "$cache/download.XXXXXX")
	trap 'rm -rf "$temporary"' EXIT
	scripts/retry.sh python3 -m pip install --quiet --disable-pip-version-check --only-binary=:all: --root-user-action=ignore \
		--target "$temporary/mypy" "mypy==$version" >&2
	mv -T "$temporary/mypy" "$target" 2>/dev/null || [ -d "$target" ] # in one step; another may have been faster
fi
echo "$target"
