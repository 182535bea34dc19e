#!/usr/bin/env bash
# Fetches Apache Kafka, which tests start as child processes. Does nothing when all is there. Usage: scripts/kafka.sh
set -euo pipefail
version=4.3.1
exec "$(dirname "$0")/maven.sh" kafka "$version" "org.apache.kafka:kafka_2.13:$version" org.apache.logging.log4j:log4j-slf4j-impl:2.25.1
