#!/usr/bin/env bash
# Fetches Apache Kafka, which tests start as child processes, as its Maven artifacts; installs a JDK and Maven when missing.
# Does nothing when all is there. Usage: scripts/kafka.sh
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.3.1
retry=$PWD/scripts/retry.sh
target=$PWD/.cache/kafka/$version

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

apt() {
	if ! command -v apt-get >/dev/null; then
		echo "kafka: install $* with the package manager of this system, then run this again" >&2
		exit 1
	fi
	echo "installing $* with apt-get"
	as_root "$retry" apt-get update -qq
	as_root "$retry" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
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
  <artifactId>kafka-for-tests</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>$version</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>2.25.1</version>
      <scope>runtime</scope>
    </dependency>
  </dependencies>
</project>
POM
echo "fetching Apache Kafka $version with Maven"
"$retry" mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work/libs"
rm -rf "$target/libs"
mv "$work/libs" "$target/libs"
touch "$target/complete" # last: an interrupted run starts again
