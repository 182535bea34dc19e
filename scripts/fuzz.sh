#!/bin/sh
# Runs every fuzz target of the module for the given time (10s): `go test -fuzz` takes only one at once.
# Usage: scripts/fuzz.sh 30s
set -eu
time=${1:-10s}
go list -f '{{range .TestGoFiles}}{{$.Dir}}/{{.}} {{$.ImportPath}}
{{end}}{{range .XTestGoFiles}}{{$.Dir}}/{{.}} {{$.ImportPath}}
{{end}}' ./... | while read -r file package; do
	[ -n "$file" ] || continue
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "fuzz $package $target for $time"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
	done
done
