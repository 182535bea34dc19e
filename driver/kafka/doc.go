// Package kafka is the driver for Apache Kafka: retries per message with delay, order by key with many handlers for
// each partition, dead letters and delays of any length, on plain topics and consumer groups.
//
// A message is a record of the topic that bears its name: value = body, key = key, everything else = headers. A group
// is a Kafka group named "topic:group". Offsets are committed only up to the contiguous prefix of what is settled, and
// what is settled beyond it is in the commit metadata. docs/kafka.md shows the topics and the protocol.
//
// Where things are:
//
//	driver        New, Close, capabilities; open makes a Broker; reach finds the brokers and checks them
//	topics        creating topics, producing
//	table         a compacted topic followed into memory: registry, held messages, side logs, dead letters
//	registry      which topics and groups there are, and how they are configured
//	publish       messages into records; dedup remembers ids of this process
//	member        this process in a group: assignment, fetching, revocation
//	partition     one owned partition: what is done, and what the side log holds
//	park          followers of a failing key into the side log; bounds of memory
//	done, commit  the done-set, and how it is committed; metadata and tally are what is committed beside
//	queue, item   lanes and keys in memory; clock rings what time brings
//	settle        outcomes: stored first, done after
//	delay*        what is not due yet: tiers, who owns and fires them, scanning them; held has marks and held messages
//	brokerclock   what time it is at the brokers
//	dead          dead letters, and records that cannot be decoded
//	view          looking at a group, joined or not; inspect, browse, get, remove, move, reset use it
//	command       changes asked for by processes that do not own the partition
//	upkeep        trimming, and groups kept alive; diagnose is for ferry doctor
package kafka
