#!/usr/bin/env bash
# Fetches ElasticMQ, which the bench of the gateway starts as a child process. Does nothing when all is there. Usage: scripts/elasticmq.sh
set -euo pipefail
version=1.7.1
exec "$(dirname "$0")/maven.sh" elasticmq "$version" "org.elasticmq:elasticmq-server_2.13:$version"
