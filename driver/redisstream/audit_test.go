package redisstream_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// everything is a topic of one partition and two groups with something in every structure. It returns the subscription
// of the group default.
func everything(t *testing.T, keep time.Duration) (*world, driver.Subscription) {
	w := newWorld(t)
	w.ok(w.d.EnsureTopic(w.ctx(), "jobs", driver.TopicConfig{Partitions: 1, Keep: keep}))
	w.ok(w.d.EnsureGroup(w.ctx(), "jobs", "other", driver.GroupOptions{}))
	s, err := w.d.Subscribe(w.ctx(),
		driver.SubscribeOptions{Topic: "jobs", Instance: "host-1", Lease: time.Hour, MaxRun: 2})
	w.ok(err)
	o, err := w.d.Subscribe(w.ctx(),
		driver.SubscribeOptions{Topic: "jobs", Group: "other", Instance: "host-1", Lease: time.Hour, MaxRun: 10})
	w.ok(err)
	add := func(m driver.Message) {
		m.Topic, m.Body = "jobs", []byte("body of "+m.ID)
		_, err := w.d.Publish(w.ctx(), []*driver.Message{&m}, driver.PublishOptions{})
		w.ok(err)
	}
	for _, id := range []string{"flown", "kept", "waits", "dead", "again"} {
		add(driver.Message{ID: id})
	}
	for i := range 4 {
		add(driver.Message{ID: fmt.Sprint("chained", i), Key: "k"})
	}
	ds := map[string]*driver.Delivery{}
	for _, d := range w.take(s, 7) {
		ds[d.ID] = d
	}
	w.settle(o, driver.Ack, w.take(o, 9)...)
	w.ok(o.Close(w.ctx()))
	w.settle(s, driver.Ack, ds["kept"])
	for id, outcome := range map[string]driver.Outcome{"waits": driver.Retry, "dead": driver.Dead, "again": driver.Dead} {
		w.ok(s.Settle(w.ctx(), []driver.Settlement{
			{Delivery: ds[id], Outcome: outcome, After: time.Hour, Failure: &driver.Failure{Error: "x"}}})[0])
	}
	w.ok(w.d.Move(w.ctx(), []driver.Move{
		{Target: driver.Target{Topic: "jobs", Group: "default", ID: "again"}, After: time.Hour}})[0])
	w.ok(s.Extend(w.ctx(), []*driver.Delivery{ds["chained0"]})[0])
	for lane, p := range map[string]driver.Priority{"low": driver.Low, "high": driver.High, "urgent": driver.Urgent} {
		add(driver.Message{ID: lane, Priority: p})
	}
	add(driver.Message{ID: "ready"})
	add(driver.Message{ID: "delayed", Delay: time.Hour, TTL: 2 * time.Hour})
	add(driver.Message{ID: "held", Delay: driver.Hold})
	add(driver.Message{ID: "expires", TTL: time.Hour, DedupID: "d", DedupWindow: time.Hour, OwnID: true})
	w.ok(w.d.StoreRaw(w.ctx(), "jobs", []byte("rubbish")))
	first := w.take(s, 1)[0] // what has a priority is read ahead, and with it all the rest
	w.ok(s.Settle(w.ctx(), []driver.Settlement{{Delivery: first, Outcome: driver.Release}})[0])
	add(driver.Message{ID: "skipped"})
	w.ok(w.d.Delete(w.ctx(), []driver.Target{{Topic: "jobs", Group: "other", ID: "skipped"}})[0])
	return w, s
}

// part is the name of a key of the partition.
func (w *world) part(name string) string { return fmt.Sprintf("{%s/jobs/0}:%s", w.prefix, name) }

// spoil damages a structure, and tells whether there was something to damage.
func (w *world) spoil(how, name string) bool {
	ctx, key := w.ctx(), w.part(name)
	kind := w.c.Type(ctx, key).Val()
	var members []string
	switch kind {
	case "hash":
		members = slices.DeleteFunc(slices.Sorted(maps.Keys(w.c.HGetAll(ctx, key).Val())), func(f string) bool {
			return f == ""
		})
	case "zset":
		members = w.c.ZRange(ctx, key, 0, -1).Val()
	case "set":
		members = w.c.SMembers(ctx, key).Val()
	}
	if len(members) == 0 {
		return false
	}
	remove := map[string]string{"hash": "HDEL", "zset": "ZREM", "set": "SREM"}[kind]
	switch how {
	case "first":
		w.ok(w.c.Do(ctx, remove, key, members[0]).Err())
	case "last":
		w.ok(w.c.Do(ctx, remove, key, members[len(members)-1]).Err())
	case "all":
		w.ok(w.c.Del(ctx, key).Err())
	case "ghost":
		ghost := map[string]string{"delayed": "0000000000000099ghost", "held": "0000000000000099ghost", "laters": "ghost",
			"later": "", "windows": "ghost"}
		member, ok := ghost[name]
		if !ok {
			member = "99-1"
		}
		switch {
		case member == "":
			return false
		case kind == "hash":
			w.ok(w.c.HSet(ctx, key, member, w.c.HGet(ctx, key, members[0]).Val()).Err())
		case kind == "zset":
			w.ok(w.c.ZAdd(ctx, key, goredis.Z{Score: 9e12, Member: member}).Err())
		default:
			w.ok(w.c.SAdd(ctx, key, member).Err())
		}
	}
	return true
}

// spoilable are the structures of a partition. What is in "told" only tells of a message, and no loss of it can be
// seen.
var (
	spoilable = strings.Fields(`later laters delayed held ids meta left graves expires kept windows dedup invalid raw
		g:default:dead g:default:off g:default:state g:default:flight g:default:claims g:default:lease g:default:busy
		g:default:chain g:default:offer g:default:lane0 g:default:lane1 g:default:lane2 g:default:lane3
		g:default:wait g:default:record g:default:history g:default:edited g:other:skip`)
	told = []string{"meta", "g:default:record", "g:default:history", "g:default:edited", "g:other:skip"}
)

// Every structure is damaged in every way. An audit finds it, mends it, and finds nothing the next time; no message is
// lost that still has its content somewhere.
func TestAuditMendsEveryStructure(t *testing.T) {
	t.Parallel()
	for _, keep := range []time.Duration{0, time.Hour} {
		for _, name := range spoilable {
			for _, how := range []string{"first", "all", "ghost"} {
				t.Run(fmt.Sprintf("%s of %s, keep %v", how, name, keep), func(t *testing.T) {
					w, s := everything(t, keep)
					w.sound()
					if w.spoil(how, name) {
						// one that is not noted is needed by one group
						w.mends(how == "ghost" || !slices.Contains(told, name) && (how == "all" || name != "left"))
						w.ok(s.Close(w.ctx()))
						w.drain(name)
					} else if how != "ghost" && (name != "kept" || keep > 0) {
						t.Error("there is nothing to damage")
					}
				})
			}
		}
	}
}

// mends demands that an audit finds something, mends all that it finds, and then finds nothing.
func (w *world) mends(something bool) {
	w.Helper()
	for _, fix := range []bool{false, true} {
		report, err := w.d.Audit(w.ctx(), "jobs", fix)
		w.ok(err)
		if something && len(report.Problems) == 0 || slices.ContainsFunc(report.Problems, func(p driver.Problem) bool {
			return p.Fixed != fix
		}) {
			w.Errorf("with repair %v: %+v", fix, report.Problems)
		}
	}
	w.sound()
}

// drain demands every message of the group default but the settled one, and leaves nothing.
func (w *world) drain(spoilt string) {
	w.Helper()
	want := strings.Fields("flown waits dead again chained0 chained1 chained2 chained3 low high urgent ready delayed " +
		"held expires skipped")
	gone := map[string][]string{"later": {"delayed", "held"}, "g:default:edited": {"dead", "again"}}[spoilt]
	for id, group := range map[string]string{"waits": driver.DefaultGroup, "dead": driver.DefaultGroup,
		"again": driver.DefaultGroup, "delayed": "", "held": ""} {
		// where it is ready already, that is refused
		_ = w.d.Move(w.ctx(), []driver.Move{{Target: driver.Target{Topic: "jobs", Group: group, ID: id}}})
	}
	s, err := w.d.Subscribe(w.ctx(), driver.SubscribeOptions{Topic: "jobs", Instance: "host-2", Lease: time.Hour})
	w.ok(err)
	got := map[string]int{}
	for missing := true; missing; {
		ctx, cancel := context.WithTimeout(w.ctx(), time.Minute)
		ds, err := s.Receive(ctx, 10)
		cancel()
		if err != nil {
			w.Fatalf("delivered only %v: %v", got, err)
		}
		w.settle(s, driver.Ack, ds...)
		for _, d := range ds {
			got[d.ID]++
		}
		missing = slices.ContainsFunc(want, func(id string) bool { return got[id] == 0 && !slices.Contains(gone, id) })
	}
	w.ok(s.Close(w.ctx()))
	w.sound()
}

// Wrong counts are found, mended and reported, whatever they count.
func TestAuditMendsCounts(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		hash, field string
		by          int64
	}{{"topic", "messages", -3}, {"topic", "bytes", 1000}, {"topic", "published", 7}, {"topic", "fanned", -1},
		{"g:default:group", "received", 5},
		{"g:default:group", "acked", -1}, {"g:other:group", "cancelled", 2}, {"left", "", 1}, {"graves", "", 1}} {
		t.Run(x.hash+" "+x.field, func(t *testing.T) {
			w, _ := everything(t, time.Hour)
			if x.field == "" { // any message's
				x.field = slices.Max(w.c.HKeys(w.ctx(), w.part(x.hash)).Val())
			}
			w.ok(w.c.HIncrBy(w.ctx(), w.part(x.hash), x.field, x.by).Err())
			w.mends(true)
		})
	}
}
