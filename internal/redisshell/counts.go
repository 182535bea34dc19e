package redisshell

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// Whole is a field of a hash that is a whole number; what is none is 0.
func Whole(fields map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(fields[name], 10, 64)
	return n
}

// Counted is a field that counts, and never goes below 0.
func Counted(fields map[string]string, name string) uint64 {
	return uint64(max(0, Whole(fields, name)))
}

// TopicCounts are what the hash of one part of a topic counts.
func TopicCounts(topic string, f map[string]string) driver.TopicStats {
	return driver.TopicStats{Topic: topic, Paused: f["paused"] == "1", Published: Counted(f, "published"),
		Fanned: Counted(f, "fanned"), Expired: Counted(f, "expired"), Cancelled: Counted(f, "cancelled"),
		Messages: int64(Counted(f, "messages")), Bytes: int64(Counted(f, "bytes"))}
}

// GroupCounts are what the hash of a group counts in one part of a topic. What is in no other state is ready.
func GroupCounts(group string, f map[string]string, inflight, waiting, dead int64) driver.GroupStats {
	g := driver.GroupStats{Group: group, Paused: f["paused"] == "1", Received: Counted(f, "received"),
		Acked: Counted(f, "acked"), Dropped: Counted(f, "dropped"), Expired: Counted(f, "expired"),
		Cancelled: Counted(f, "cancelled"), Redelivered: Counted(f, "redelivered"), Retried: Counted(f, "retried"),
		Died: Counted(f, "graves"), Inflight: inflight, Waiting: waiting, Dead: dead}
	g.Ready = int64(g.Received) - int64(g.Acked+g.Dropped+g.Expired+g.Cancelled) - inflight - waiting - dead
	return g
}

// AddCounts adds what another part of a topic counts. Groups stay in the order of their names.
func AddCounts(total *driver.TopicStats, one driver.TopicStats) {
	total.Paused = total.Paused || one.Paused
	total.Published += one.Published
	total.Fanned += one.Fanned
	total.Expired += one.Expired
	total.Cancelled += one.Cancelled
	total.Delayed += one.Delayed
	total.Held += one.Held
	total.Invalid += one.Invalid
	total.Messages += one.Messages
	total.Bytes += one.Bytes
	for _, g := range one.Groups {
		i, found := slices.BinarySearchFunc(total.Groups, g.Group, func(x driver.GroupStats, name string) int {
			return strings.Compare(x.Group, name)
		})
		if !found {
			total.Groups = slices.Insert(total.Groups, i, g)
			continue
		}
		x := &total.Groups[i]
		x.Paused = x.Paused || g.Paused
		x.Received += g.Received
		x.Acked += g.Acked
		x.Dropped += g.Dropped
		x.Expired += g.Expired
		x.Cancelled += g.Cancelled
		x.Ready += g.Ready
		x.Inflight += g.Inflight
		x.Waiting += g.Waiting
		x.Dead += g.Dead
		x.Redelivered += g.Redelivered
		x.Retried += g.Retried
		x.Died += g.Died
		x.Oldest = max(x.Oldest, g.Oldest)
		x.Consumers = max(x.Consumers, g.Consumers) // a member is in every part
	}
}
