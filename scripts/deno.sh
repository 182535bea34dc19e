#!/usr/bin/env bash
# Brings Deno, which runs the TypeScript SDK, too, in the version that is pinned here, from npm, which carries a plain binary. Prints its
# path, and nothing else, on standard output. Does nothing when it is there. Usage: deno=$(scripts/deno.sh)
set -euo pipefail
cd "$(dirname "$0")/.."
version=2.9.0
cache=$PWD/.cache/deno
target=$cache/$version

if [ ! -x "$target/deno" ]; then
	node=$(scripts/node.sh)
	PATH=$(dirname "$node"):$PATH
	echo "installing Deno $version" >&2
	mkdir -p "$cache"
	temporary=$(mktemp -d "$cache/download.XXXXXX")
	trap 'rm -rf "$temporary"' EXIT
	scripts/retry.sh npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$temporary" "deno@$version" >&2
	binary=("$temporary"/node_modules/@deno/*/deno) # that of this platform alone
	mkdir "$temporary/binary"
	mv "${binary[0]}" "$temporary/binary/deno"
	chmod +x "$temporary/binary/deno"
	mv -T "$temporary/binary" "$target" 2>/dev/null || [ -x "$target/deno" ] # in one step; another may have been faster
fi
if ! "$target/deno" --version >/dev/null; then
	echo "deno: $target/deno does not run here; remove it, or see which platforms the npm package deno has" >&2
	exit 1
fi
echo "$target/deno"
