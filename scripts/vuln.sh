#!/bin/sh
# Runs govulncheck on every module. Says clearly when the database of vulnerabilities cannot be reached: then nothing was checked.
# Usage: scripts/vuln.sh [database, a URL]
set -eu
db=${1:-https://vuln.go.dev}
check=golang.org/x/vuln/cmd/govulncheck@v1.1.4
"$(dirname "$0")/retry.sh" go run $check -version >/dev/null
for module in . bench tools; do
	echo "govulncheck in $module"
	# It runs here, and not in its own module: -mod=readonly is for ours.
	if ! out=$(cd $module && GOFLAGS='' go run $check -db "$db" ./... 2>&1); then
		echo "$out"
		case $out in
		*"fetching vulnerabilities"*)
			echo "vuln: $db cannot be reached, so that NOTHING was checked; VULNDB=file:///... names a copy" >&2
			exit 2
			;;
		esac
		exit 1
	fi
	echo "$out" | tail -1
done
