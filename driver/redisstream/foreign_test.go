package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// comeAndGo are the keys that exist only while there is something in them, so that another program could take their
// names.
var comeAndGo = []string{"meta", "ids", "left", "graves", "later", "dedup", "raw", "laters", "delayed", "held",
	"expires", "windows", "kept", "invalid",
	"g:default:state", "g:default:flight", "g:default:bulk", "g:default:busy", "g:default:claims",
	"g:default:offer", "g:default:record",
	"g:default:history",
	"g:default:edited", "g:default:lane0", "g:default:lane1", "g:default:lane2", "g:default:lane3",
	"g:default:chain", "g:default:wait",
	"g:default:lease", "g:default:dead", "g:default:off", "g:default:skip",
	"g:other:skip", "g:other:done", "g:other:flight", "g:other:wait"}

// Whichever name somebody else takes for a while, every call works or says so, and when it is free again nothing is
// missing or stuck.
func TestForeignKeysLoseNothing(t *testing.T) {
	t.Parallel()
	for _, name := range comeAndGo {
		t.Run(name, func(t *testing.T) {
			u := &usurped{world: newWorld(t), alive: map[string]bool{}}
			u.onePartition()
			u.s = u.subscribe("a", time.Hour)
			_, err := u.d.Subscribe(u.ctx(), driver.SubscribeOptions{Topic: "jobs", Group: "other", Instance: "a"})
			u.ok(err)
			for _, taken := range []bool{false, true} {
				if taken {
					u.usurp(name)
				}
				u.work(taken)
			}
			u.restore()
			u.drained()
		})
	}
}

// usurped is a topic of which the name of one key is taken.
type usurped struct {
	*world
	s       driver.Subscription
	key     string
	round   int
	refused int
	alive   map[string]bool // messages that the default group has not finished; false: it is not known
	held    []*driver.Delivery
}

func (u *usurped) usurp(name string) {
	u.Helper()
	u.key = fmt.Sprintf("{%s/jobs/0}:%s", u.prefix, name)
	if err := u.c.Rename(u.ctx(), u.key, u.key+"-saved").Err(); err != nil &&
		!strings.Contains(err.Error(), "no such key") {
		u.Fatal(err)
	}
	u.ok(u.c.Set(u.ctx(), u.key, "foreign", 0).Err())
}

func (u *usurped) restore() {
	u.Helper()
	if got := u.c.Get(u.ctx(), u.key).Val(); got != "foreign" {
		u.Errorf("somebody else's key has become %q", got)
	}
	u.ok(u.c.Del(u.ctx(), u.key).Err())
	if err := u.c.Rename(u.ctx(), u.key+"-saved", u.key).Err(); err != nil &&
		!strings.Contains(err.Error(), "no such key") {
		u.Fatal(err)
	}
}

// work does some of everything. While a name is taken, it may be refused.
func (u *usurped) work(taken bool) {
	u.Helper()
	u.round++
	for i := range 12 {
		m := &driver.Message{ID: fmt.Sprintf("%d-%d", u.round, i), Topic: "jobs", Key: []string{"", "", "k", "l"}[i%4]}
		if i > 8 {
			m.Priority, m.OwnID = driver.High, true
		}
		if i == 8 {
			m.Delay, m.TTL, m.DedupID, m.DedupWindow = time.Millisecond, time.Hour, m.ID, time.Hour
		}
		_, err := u.d.Publish(u.ctx(), []*driver.Message{m}, driver.PublishOptions{})
		if u.accepted(err, taken, "Publish") {
			u.alive[m.ID] = true
		}
	}
	ctx, cancel := context.WithTimeout(u.Context(), 2*time.Second)
	defer cancel()
	for range 3 {
		ds, err := u.s.Receive(ctx, 3)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		u.accepted(err, taken, "Receive")
		u.held = append(u.held, ds...)
	}
	for i, o := range []driver.Outcome{driver.Ack, driver.Retry, driver.Dead, driver.Release, driver.Drop} {
		if len(u.held) == 0 {
			break
		}
		d := u.held[0]
		u.held = u.held[1:]
		err := u.s.Settle(u.ctx(), []driver.Settlement{{Delivery: d, Outcome: o, Failure: &driver.Failure{Error: "x"}}})[0]
		if errors.Is(err, driver.ErrLeaseLost) {
			continue // it came back with one before it
		}
		if u.accepted(err, taken, fmt.Sprint("Settle ", i)) && (o == driver.Ack || o == driver.Drop || o == driver.Dead) {
			delete(u.alive, d.ID)
		}
	}
}

func (u *usurped) accepted(err error, taken bool, what string) bool {
	u.Helper()
	if err == nil {
		return true
	}
	var ours *driver.Error
	if !taken || !errors.Is(err, driver.ErrNotApplied) || !errors.As(err, &ours) ||
		!strings.Contains(ours.Hint, "Options.Prefix") {
		u.Errorf("%s: got %v, want no error, or one that says what to do", what, err)
	}
	u.refused++
	return false
}

// drained demands that everything that is not finished comes, and that the topic is sound before and after.
func (u *usurped) drained() {
	u.Helper()
	u.ok(u.s.Close(u.ctx()))
	u.sound()
	u.s = u.subscribe("b", time.Hour)
	for len(u.alive) > 0 {
		ds, err := u.s.Receive(u.ctx(), 10)
		if err != nil {
			u.Fatalf("%v are missing: %v", u.alive, err)
		}
		for _, d := range ds {
			if !u.alive[d.ID] {
				u.Errorf("%s came although it was finished or refused", d.ID)
			}
			delete(u.alive, d.ID)
			u.ok(u.s.Settle(u.ctx(), []driver.Settlement{{Delivery: d}})[0])
		}
	}
	u.sound()
}
