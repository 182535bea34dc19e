#!/bin/sh
# Runs a command up to five times, waiting longer each time: a module proxy may answer 429 (too many requests).
# Usage: scripts/retry.sh go mod download
set -u
attempt=1
wait=${RETRY_WAIT:-2}
until "$@"; do
	status=$?
	if [ "$attempt" -ge 5 ]; then
		echo "retry: gave up after $attempt attempts: $*" >&2
		exit "$status"
	fi
	echo "retry: attempt $attempt failed with status $status, trying again in ${wait}s: $*" >&2
	sleep "$wait"
	attempt=$((attempt + 1))
	wait=$((wait * 2))
done
