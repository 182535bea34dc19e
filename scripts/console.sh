#!/usr/bin/env bash
# Runs an npm command of the console with a Node.js that is new enough, and what it depends on installed as package-lock.json says.
# Usage: scripts/console.sh run build
set -euo pipefail
cd "$(dirname "$0")/../console"
PATH=$(dirname "$(../scripts/node.sh)"):$PATH
if ! cmp -s package-lock.json node_modules/.installed; then
	echo "installing what the console is built with" >&2
	# Not npm ci: newer ones refuse a lock file without the packages of other systems, which not every registry has.
	../scripts/retry.sh npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error >&2
	cp package-lock.json node_modules/.installed # last: an interrupted run is not taken for a whole one
fi
exec npm --loglevel=error "$@"
