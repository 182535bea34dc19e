package redis

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// token fences one delivery. Lease and until are guarded by the lock of its subscription.
type token struct {
	s     *subscription
	shard int
	first string // the claim that brought it, which is its first lease
	seq   string
	// the lease that it was in last: an extension may be splitting it off right now, and scripts look for it
	lease string
	until time.Time // by our clock

	claimed time.Time // by our clock, before the request was sent

	batch *batchLease // nil once it is not known any more what else is in its lease
	item  string
	id    string // of the message, as it was published
	own   bool   // the producer chose the id
	key   string
	size  int // of the stored envelope

	leaving bool // the acknowledgement that is being written ends it
}

// batchLease is what we believe a lease to be. It is guarded by the lock of its subscription.
type batchLease struct {
	instance string
	order    []*token
}

// record is the text of the lease, and that without those that leave it: "" when none is left.
func (b *batchLease) record() (is, will []byte) {
	size, left := len(b.instance), 0
	for _, t := range b.order {
		size += 1 + len(t.item)
		if !t.leaving {
			left++
		}
	}
	is, will = append(make([]byte, 0, size), b.instance...), []byte{}
	if left > 0 {
		will = append(make([]byte, 0, size), b.instance...)
	}
	for _, t := range b.order {
		is = append(append(is, '\n'), t.item...)
		if !t.leaving {
			will = append(append(will, '\n'), t.item...)
		}
	}
	return is, will
}

// leaveBatch notes that a delivery is not in its lease any more. The caller has the lock.
func (t *token) leaveBatch() {
	if t.batch == nil {
		return
	}
	if order := t.batch.order; len(order) > 0 && order[0] == t { // as nearly always
		t.batch.order = order[1:]
	} else if i := slices.Index(order, t); i >= 0 {
		t.batch.order = slices.Delete(order, i, i+1)
	}
	t.batch = nil
}

// HeldBy reports whether a member has received it.
func (t *token) HeldBy(member any) bool { return member == any(&t.s.Member) }

// Part is its shard.
func (t *token) Part() int { return t.shard }

// Place is its sequence number.
func (t *token) Place() string { return t.seq }

// Ended reports whether its lease is over by our clock.
func (t *token) Ended(now time.Time) bool { return now.After(t.until) }

// String names the delivery by its lease and its message.
func (t *token) String() string { return t.first + "/" + t.seq }

// item is a message as the lanes hold it; lua/head.lua describes its text.
type item struct {
	text      string
	lane      int
	seq       string
	published time.Time
	since     time.Time // it became ready
	key       string
}

// parseItem reads an item, and reports whether it is one.
func parseItem(s string) (item, bool) {
	it := item{text: s}
	head, rest, ok := strings.Cut(s, "@")
	if !ok || len(head) < 2 || head[0] < '0' || head[0] > '3' {
		return it, false
	}
	it.lane, it.seq = int(head[0]-'0'), head[1:]
	when, key, _ := strings.Cut(rest, ":")
	it.key = key
	when, _, _ = strings.Cut(when, "^")
	at, later, _ := strings.Cut(when, "+")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return it, false
	}
	var more int64
	if later != "" {
		more, _ = strconv.ParseInt(later, 10, 64)
	}
	if ms > 0 {
		it.published = time.UnixMilli(ms)
	}
	it.since = time.UnixMilli(ms + more)
	return it, true
}

// itemText is the item of a message with this content.
func itemText(m *driver.Message, seq string) string {
	s := strconv.Itoa(m.Priority.Lane()) + seq + "@" + strconv.FormatInt(max(0, m.PublishedAt.UnixMilli()), 10)
	if m.Key != "" {
		s += ":" + m.Key
	}
	return s
}

// state is what a group knows of a message that came back; lua/state.lua describes its text.
type state struct {
	failed, lost, rounds int
	cause                driver.Cause
	letter               byte
	till                 time.Time
	item                 string
}

func parseState(s string) (state, bool) {
	if s == "" {
		return state{}, false
	}
	f := strings.SplitN(s, " ", 7)
	if len(f) != 7 || f[4] == "" {
		return state{}, false
	}
	var n [4]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(f[i]); err != nil {
			return state{}, false
		}
	}
	till, _ := strconv.ParseInt(f[5], 10, 64)
	return state{failed: n[0], lost: n[1], rounds: n[2], cause: driver.Cause(n[3]), letter: f[4][0],
		till: time.UnixMilli(till), item: f[6]}, true
}
