// Package kafka is the driver for Apache Kafka: retries per message with delay, order by key with many handlers for
// each partition, dead letters and delays of any length, on plain topics and consumer groups.
//
// A message is a record of the topic that bears its name: value = body, key = key, everything else = headers. A group
// is a Kafka group named "topic:group". Offsets are committed only up to the contiguous prefix of what is settled, and
// what is settled beyond it is in the commit metadata. docs/kafka.md shows the topics and the protocol.
//
// Where things are:
//
//	driver        New, Close, capabilities
//	topics        creating topics, producing
//	table         a compacted topic followed into memory: registry, delays, side logs, dead letters
//	registry      which topics and groups there are, and how they are configured
//	publish       messages into records; dedup remembers ids of this process
//	member        this process in a group: assignment, fetching, revocation
//	partition     one owned partition: what is done, and what the side log holds
//	done, commit  the done-set, and how it is committed
//	queue, item   lanes and keys in memory; clock rings what time brings
//	settle        outcomes: stored first, done after
//	delay         what is not due yet
//	dead          dead letters, and records that cannot be decoded
//	view          looking at a group, joined or not; inspect, browse, get, remove, move, reset use it
package kafka
