#!/usr/bin/env bash
# Fetches a program in Java, with all it needs, as Maven artifacts into .cache/NAME/VERSION/libs; installs a JDK and Maven when missing.
# Does nothing when all is there. Usage: scripts/maven.sh NAME VERSION GROUP:ARTIFACT:VERSION...
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1 version=$2
shift 2
retry=$PWD/scripts/retry.sh
target=$PWD/.cache/$name/$version

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

apt() {
	if ! command -v apt-get >/dev/null; then
		echo "$name: install $* with the package manager of this system, then run this again" >&2
		exit 1
	fi
	echo "installing $* with apt-get"
	as_root "$retry" apt-get update -qq
	as_root "$retry" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# dependency prints one of GROUP:ARTIFACT:VERSION.
dependency() {
	IFS=: read -r group artifact release <<<"$1"
	echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$release</version><scope>runtime</scope></dependency>"
}

command -v java >/dev/null || apt default-jdk-headless
[ -e "$target/complete" ] && exit 0
command -v mvn >/dev/null || apt maven

mkdir -p "$target"
work=$(mktemp -d "$target/download.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>ferry</groupId>
  <artifactId>$name</artifactId>
  <version>1</version>
  <dependencies>
$(for artifact in "$@"; do dependency "$artifact"; done)
  </dependencies>
</project>
POM
echo "fetching $name $version with Maven"
"$retry" mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work/libs"
rm -rf "$target/libs"
mv "$work/libs" "$target/libs"
touch "$target/complete" # last: an interrupted run starts again
