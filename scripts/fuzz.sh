#!/bin/sh
# Runs every fuzz target of the module for the given time (10s): `go test -fuzz` takes only one at once.
# An input that finds something new is made smaller by ten tries at most: otherwise that takes all of the time.
# Usage: scripts/fuzz.sh 30s
set -eu
time=${1:-10s}
for package in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./...); do
	grep -qs '^func Fuzz' "$package"/*_test.go || continue # the next line compiles the package
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz $package $target for $time"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x "$package"
	done
done
