package redisshell

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Whole is a field of a hash that is a whole number; what is none is 0.
func Whole(fields map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(fields[name], 10, 64)
	return n
}

// counted is a field that counts, and never goes below 0.
func counted(fields map[string]string, name string) uint64 {
	return uint64(max(0, Whole(fields, name)))
}

// CountsOf reads what a script counts in one part of a topic: {"ok", fields of the topic, {delayed, held, invalid}, of
// each group {name, order, fields, in flight, waiting, dead, members, how long the oldest is ready in ms}}. What is in
// no other state is ready.
func CountsOf(topic string, reply redisconn.Reply) driver.TopicStats {
	f, beside := reply.List(1).Map(), reply.List(2)
	st := driver.TopicStats{Topic: topic, Paused: f["paused"] == "1", Published: counted(f, "published"),
		Fanned: counted(f, "fanned"), Expired: counted(f, "expired"), Cancelled: counted(f, "cancelled"),
		Messages: int64(counted(f, "messages")), Bytes: int64(counted(f, "bytes")),
		Delayed: beside.Number(0), Held: beside.Number(1), Invalid: beside.Number(2)}
	for _, x := range reply.List(3) {
		st.Groups = append(st.Groups, groupCountsOf(redisconn.ReplyOf(x)))
	}
	return st
}

func groupCountsOf(item redisconn.Reply) driver.GroupStats {
	f := item.List(2).Map()
	g := driver.GroupStats{Group: item.Text(0), Paused: f["paused"] == "1", Received: counted(f, "received"),
		Acked: counted(f, "acked"), Dropped: counted(f, "dropped"), Expired: counted(f, "expired"),
		Cancelled: counted(f, "cancelled"), Redelivered: counted(f, "redelivered"), Retried: counted(f, "retried"),
		Died: counted(f, "graves"), Inflight: max(0, item.Number(3)), Waiting: max(0, item.Number(4)), Dead: item.Number(5),
		Consumers: len(item.List(6)), Oldest: time.Duration(item.Number(7)) * time.Millisecond}
	if item.Text(1) == "1" {
		g.Order = driver.Relaxed
	}
	g.Ready = int64(g.Received) - int64(g.Acked+g.Dropped+g.Expired+g.Cancelled) - g.Inflight - g.Waiting - g.Dead
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
