package redis_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// claimWords is how many words a claim has: the command, the keys of a topic and a group, the arguments.
const claimWords = 3 + 19 + 21 + 11

// onClaims makes a hook that does something to the answer of the next n claims that succeed.
func onClaims(n *atomic.Int64, do func(cmd goredis.Cmder) error) hook {
	return hook{process: func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
		err := next(ctx, cmd)
		if err != nil || !isScript(cmd) || len(cmd.Args()) != claimWords || n.Add(-1) < 0 {
			return err
		}
		return do(cmd)
	}}
}

func lose(cmd goredis.Cmder) error {
	cmd.SetErr(context.DeadlineExceeded)
	return context.DeadlineExceeded
}

// A lease that is half over when the answer comes is renewed; one that is over is not handed out, but claimed anew.
func TestLateAnswerOfClaim(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	for _, c := range []struct {
		late       time.Duration
		deliveries int
	}{{2200 * time.Millisecond, 1}, {4300 * time.Millisecond, 2}} {
		t.Run(c.late.String(), func(t *testing.T) {
			t.Parallel()
			var slow atomic.Int64
			d := openWith(t, redistest.Shared(t).Addr(), namespace(), onClaims(&slow, func(goredis.Cmder) error {
				time.Sleep(c.late) // the answer is under way; that it takes time is what is tested
				return nil
			}))
			closing(t, d)
			s, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "jobs", Instance: "tester", Lease: lease})
			if err != nil {
				t.Fatal(err)
			}
			var ds []*driver.Delivery
			for asked := time.Now(); ds == nil || c.late < lease && time.Since(asked) > lease; {
				ack(t, s, ds) // a busy machine brought it after its lease
				publish(t, d, "jobs", "a")
				slow.Store(1)
				asked, ds = time.Now(), take(t, s, 1)
			}
			if left := time.Until(ds[0].LeaseUntil); left < lease/2 {
				t.Errorf("handed out with %v left of a lease of %v", left, lease)
			}
			if ds[0].Deliveries != c.deliveries {
				t.Errorf("delivery number %d, want %d", ds[0].Deliveries, c.deliveries)
			}
			ack(t, s, ds)
		})
	}
}

// A claim whose answer was lost is asked for again, and brings nothing that has expired meanwhile.
func TestFoundClaimBringsNothingExpired(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	d := openWith(t, redistest.Shared(t).Addr(), namespace(), onClaims(&lost, lose))
	closing(t, d)
	s := subscribe(t, d, "jobs")
	ttl := 300 * time.Millisecond
	ms := []*driver.Message{{ID: "short", Topic: "jobs", Key: "k", TTL: ttl},
		{ID: "long", Topic: "jobs", Key: "k2", TTL: time.Hour}}
	if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	published := time.Now()
	lost.Store(1)
	if ds, err := s.Receive(t.Context(), 2); err == nil {
		t.Fatalf("Receive returned %v although its answer was lost", ds)
	}
	time.Sleep(time.Until(published.Add(ttl + 5*time.Millisecond))) // until it has expired
	ds := take(t, s, 1)
	if ds[0].ID != "long" || ds[0].Deliveries != 1 {
		t.Errorf("got %s, delivery %d; want long, 1", ds[0].ID, ds[0].Deliveries)
	}
	ack(t, s, ds)
	st, err := d.Stats(t.Context(), "jobs")
	if err != nil || st.Groups[0].Expired != 1 || st.Messages != 0 {
		t.Errorf("Stats %+v, %v; want one expired and nothing left", st, err)
	}
}

// A message that expires while the answer of its claim is under way is not handed out.
func TestLateAnswerBringsNothingExpired(t *testing.T) {
	t.Parallel()
	var slow atomic.Int64
	ttl := 200 * time.Millisecond
	d := openWith(t, redistest.Shared(t).Addr(), namespace(), onClaims(&slow, func(goredis.Cmder) error {
		time.Sleep(ttl + 10*time.Millisecond) // the answer is under way; that it takes time is what is tested
		return nil
	}))
	closing(t, d)
	s := subscribe(t, d, "jobs")
	ms := []*driver.Message{{ID: "short", Topic: "jobs", TTL: ttl}, {ID: "long", Topic: "jobs"}}
	if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	slow.Store(1)
	if ds := take(t, s, 1); ds[0].ID != "long" {
		t.Errorf("got %s, which has expired", ds[0].ID)
	}
	if st, err := d.Stats(t.Context(), "jobs"); err != nil || st.Groups[0].Expired != 1 {
		t.Errorf("Stats %+v, %v; want one expired", st, err)
	}
}

// What a lost claim took comes back in portions that the callers asked for, and never beyond MaxInflight.
func TestFoundClaimIsPortioned(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	d := openWith(t, redistest.Shared(t).Addr(), namespace(), onClaims(&lost, lose))
	closing(t, d)
	s, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "jobs", Instance: "tester", MaxInflight: 5})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, d, "jobs", "a", "b", "c", "d", "e", "f")
	lost.Store(1)
	if ds, err := s.Receive(t.Context(), 4); err == nil {
		t.Fatalf("Receive returned %v although its answer was lost", ds)
	}
	got := ""
	for _, n := range []int{1, 3, 1} {
		for _, x := range take(t, s, n) {
			got += string(x.Body)
		}
	}
	if got != "abcde" {
		t.Errorf("got %s, want abcde", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if ds, err := s.Receive(ctx, 1); err == nil {
		t.Errorf("a sixth delivery %v although five are held", ds)
	}
}

// What is released returns before what came after it, although a follower of some key was put at the end of the lane
// meanwhile.
func TestReleasedKeepsItsPlaceBesideKeys(t *testing.T) {
	t.Parallel()
	d := open(t, redistest.Shared(t).URL(), namespace())
	closing(t, d)
	s := subscribe(t, d, "jobs")
	ms := []*driver.Message{{ID: "a", Key: "k"}, {ID: "b", Key: "k"}, {ID: "first"}, {ID: "second"}}
	for _, m := range ms {
		m.Topic = "jobs"
	}
	if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	ds := take(t, s, 2)
	ack(t, s, ds[:1]) // now b may go
	if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: ds[1], Outcome: driver.Release}})[0]; err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, x := range take(t, s, 3) {
		if x.Key == "" {
			order = append(order, x.ID)
		}
	}
	if len(order) != 2 || order[0] != "first" {
		t.Errorf("without keys came %v, want first and second", order)
	}
}

// The followers of a key that became free stand before what was published long after them, and nothing is lost or
// repeated on the way.
func TestFollowersComeBeforeWhatIsMuchYounger(t *testing.T) {
	t.Parallel()
	d := open(t, redistest.Shared(t).URL(), namespace())
	closing(t, d)
	s, err := d.Subscribe(t.Context(),
		driver.SubscribeOptions{Topic: "jobs", Instance: "tester", Lease: time.Minute, MaxRun: 1})
	if err != nil {
		t.Fatal(err)
	}
	var ms []*driver.Message
	add := func(id, key string) { ms = append(ms, &driver.Message{ID: id, Topic: "jobs", Key: key}) }
	for _, id := range []string{"a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"} {
		add(id, id[:1])
	}
	for i := range 1500 {
		add(fmt.Sprint("k", i), fmt.Sprint("k", i))
	}
	if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, n := range []int{3, 2, 1, 2, 100, 400, 400, 400} { // 2 and 1: some of what was freed stays behind
		ds := take(t, s, n)
		for _, x := range ds {
			if want := ms[next].ID; x.ID != want {
				t.Fatalf("delivery %d is %s, want %s", next, x.ID, want)
			}
			next++
		}
		ack(t, s, ds)
	}
	drain(t, s, len(ms)-next)
	if report, err := d.Audit(t.Context(), "jobs", false); err != nil || len(report.Problems) > 0 ||
		report.Stats.Messages != 0 {
		t.Errorf("Audit at the end: %+v, %v", report, err)
	}
}
