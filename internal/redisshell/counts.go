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

// AddCounts adds what a script counts in one part of a topic: {"ok", fields of the topic, {delayed, held, invalid}, of
// each group {name, order, fields, in flight, waiting, dead, members, how long the oldest is ready in ms}}. What is in
// no other state is ready.
func AddCounts(total *driver.TopicStats, reply redisconn.Reply) {
	f, beside := reply.List(1).Map(), reply.List(2)
	total.Paused = total.Paused || f["paused"] == "1"
	total.Published += counted(f, "published")
	total.Fanned += counted(f, "fanned")
	total.Expired += counted(f, "expired")
	total.Cancelled += counted(f, "cancelled")
	total.Delayed += beside.Number(0)
	total.Held += beside.Number(1)
	total.Invalid += beside.Number(2)
	total.Messages += int64(counted(f, "messages"))
	total.Bytes += int64(counted(f, "bytes"))
	for _, x := range reply.List(3) {
		addGroupCounts(total, redisconn.ReplyOf(x))
	}
}

// addGroupCounts adds what a group has in one part. Groups stay in the order of their names.
func addGroupCounts(total *driver.TopicStats, item redisconn.Reply) {
	name, f := item.Text(0), item.List(2).Map()
	i, found := slices.BinarySearchFunc(total.Groups, name, func(x driver.GroupStats, name string) int {
		return strings.Compare(x.Group, name)
	})
	if !found {
		total.Groups = slices.Insert(total.Groups, i, driver.GroupStats{Group: name})
	}
	g := &total.Groups[i]
	if item.Text(1) == "1" {
		g.Order = driver.Relaxed
	}
	g.Paused = g.Paused || f["paused"] == "1"
	g.Received += counted(f, "received")
	g.Acked += counted(f, "acked")
	g.Dropped += counted(f, "dropped")
	g.Expired += counted(f, "expired")
	g.Cancelled += counted(f, "cancelled")
	g.Redelivered += counted(f, "redelivered")
	g.Retried += counted(f, "retried")
	g.Died += counted(f, "graves")
	g.Inflight += max(0, item.Number(3))
	g.Waiting += max(0, item.Number(4))
	g.Dead += item.Number(5)
	g.Ready = int64(g.Received) - int64(g.Acked+g.Dropped+g.Expired+g.Cancelled) - g.Inflight - g.Waiting - g.Dead
	g.Consumers = max(g.Consumers, len(item.List(6))) // a member is in every part
	g.Oldest = max(g.Oldest, time.Duration(item.Number(7))*time.Millisecond)
}
