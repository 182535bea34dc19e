// Package redisstream is a Ferry driver on Redis Streams: a topic is some streams with real consumer groups.
//
// A topic has a fixed number of partitions. Each is a stream, by the hash of a message's key, with side structures that
// share its hash tag. An entry is added to the stream once; every group reads it with XREADGROUP into a window of its
// own, where priorities, key order, retries and leases are decided, and acknowledges it with XACK. Each partition is
// claimed from by one member of a group at a time, its owner. docs/redisstream.md has the whole design.
//
// Words that only this driver has:
//
//	assignment  what a subscription knows of one partition: the epoch with which it owns it, if it does, and what there
//	            may be to claim
//	hungry      a group is, in a partition, after a claim that found less than it asked for (a field of the group's
//	            hash): whoever adds something takes that back and tells the group's members
package redisstream
