package redisstream_test

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// What programs of before have stored is read: a settled message that does not tell how, and a parse error without a
// time.
func TestRecordsOfBeforeAreRead(t *testing.T) {
	w := newWorld(t)
	w.ok(w.d.EnsureTopic(w.ctx(), "jobs", driver.TopicConfig{Partitions: 1, Keep: time.Hour}))
	s := w.subscribe("a", time.Minute)
	w.publish(0, 1, "")
	d := w.take(s, 1)[0]
	w.settle(s, driver.Ack, d)
	done := func() driver.Entry {
		t.Helper()
		es, err := w.d.Get(w.ctx(), driver.Target{Topic: "jobs", ID: d.ID})
		w.ok(err)
		return es[0]
	}
	if e := done(); e.State != driver.StateDone || e.SettledAt.IsZero() || e.Instance != "a" {
		t.Errorf("%+v", e)
	}
	w.ok(w.c.Del(w.ctx(), w.part("g:default:done")).Err())
	if e := done(); e.State != driver.StateDone || !e.SettledAt.IsZero() || e.Instance != "" || e.Took != 0 {
		t.Errorf("%+v", e)
	}
	w.ok(w.c.Eval(w.ctx(), `redis.call('HSET', KEYS[1], '1-1', cmsgpack.pack({'no body', {'x', 'rubbish'}}))
		return redis.call('ZADD', KEYS[2], 1, '1-1')`, []string{w.part("raw"), w.part("invalid")}).Err())
	page, err := w.d.Browse(w.ctx(), driver.Query{Topic: "jobs", State: driver.StateInvalid})
	w.ok(err)
	if len(page.Entries) != 1 || page.Entries[0].Problem != "no body" || !page.Entries[0].FoundAt.IsZero() ||
		string(page.Entries[0].Raw) != "rubbish" {
		t.Errorf("%+v", page.Entries)
	}
}
