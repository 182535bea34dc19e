package kafka_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// mortal is a driver that dies when its wire is cut and its members are expelled: its group need not wait for the
// session.
func mortal(t *testing.T, c *kfake.Cluster, namespace string) (*kafka.Driver, *wire) {
	t.Helper()
	w := &wire{}
	d, err := kafka.New(t.Context(), kafka.Options{Brokers: c.ListenAddrs(), Namespace: namespace, Partitions: 1,
		InternalPartitions: 1, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.Close(ctx) // it cannot say goodbye
	})
	return d, w
}

// expel removes everybody from a group.
func expel(t *testing.T, c *kfake.Cluster, group string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	found, err := kadm.NewClient(cl).DescribeGroups(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, m := range found[group].Members {
		x := kmsg.NewLeaveGroupRequestMember()
		x.MemberID = m.MemberID
		req.Members = append(req.Members, x)
	}
	if _, err := req.RequestWith(t.Context(), cl); err != nil {
		t.Fatal(err)
	}
}

// TestAckAfterRetryIsStored: a message fails, succeeds the second time, and its holder dies before anything of it was
// committed. It does not come again, least of all as a new one with all its attempts.
func TestAckAfterRetryIsStored(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "l"+rand.Text()[:10]+"."
	dying, w := mortal(t, c, namespace)
	publish(t, dying, message("held", "1"), message("before", "2"), message("twice", "2"), message("next", "2"))
	s := subscribe(t, dying, "dying")
	if x := receive(t, s); x.ID != "held" {
		t.Fatalf("received %s", x.ID)
	}
	var refusing atomic.Bool
	refusing.Store(true)
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if !refusing.Load() {
			return nil, nil, false
		}
		c.KeepControl()
		return refusedCommit(req.(*kmsg.OffsetCommitRequest), kerr.RebalanceInProgress), nil, true
	})
	settle(t, s, receive(t, s), driver.Ack, 0) // before: it must not come again after what comes after it
	for attempt := 1; attempt <= 2; attempt++ {
		x := receive(t, s)
		if x.ID != "twice" || x.Attempt != attempt {
			t.Fatalf("received %s, attempt %d", x.ID, x.Attempt)
		}
		if attempt == 1 {
			settle(t, s, x, driver.Retry, 0)
		} else {
			settle(t, s, x, driver.Ack, 0)
		}
	}
	w.cut()
	refusing.Store(false)
	expel(t, c, namespace+"orders:default")
	heir, _ := mortal(t, c, namespace)
	hs := subscribe(t, heir, "heir")
	want := map[string]bool{"held": true, "next": true}
	for len(want) > 0 {
		x := receive(t, hs)
		if !want[x.ID] {
			t.Errorf("received %s, attempt %d, which was acknowledged", x.ID, x.Attempt)
		}
		delete(want, x.ID)
		settle(t, hs, x, driver.Ack, 0)
	}
	state(t, heir, "twice", "")
	state(t, heir, "before", "")
}

// refuseCommits lets the coordinator answer commits as in the middle of a rebalance while it is set.
func refuseCommits(c *kfake.Cluster) *atomic.Bool {
	var refusing atomic.Bool
	refusing.Store(true)
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if !refusing.Load() {
			return nil, nil, false
		}
		return refusedCommit(req.(*kmsg.OffsetCommitRequest), kerr.RebalanceInProgress), nil, true
	})
	return &refusing
}

// awaitStandIn waits until the retry log says that an offset is done, although that is not committed.
func awaitStandIn(t *testing.T, c *kfake.Cluster, namespace string, offset int64) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		namespace + "_ferry.retry.6.orders.default": {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		for _, r := range cl.PollFetches(ctx).Records() {
			var x struct {
				At       int64
				Metadata string
			}
			if string(r.Key) != "s" || json.Unmarshal(r.Value, &x) != nil {
				continue
			}
			done := offsets.NewSet(x.At)
			if done.ReadMetadata(x.Metadata); done.Has(offset) {
				return
			}
		}
	}
	t.Errorf("the retry log does not say that offset %d is done", offset)
}

// TestAcksOfALongRebalance: brokers accept no commit for longer than a moment, and the owner dies before they do; then
// its heir, likewise. What they had acknowledged by then does not come again, and what was held does.
func TestAcksOfALongRebalance(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "l"+rand.Text()[:10]+"."
	watcher, _ := mortal(t, c, namespace)
	publish(t, watcher, message("held", "1"), message("a", "2"), message("b", "3"), message("c", "4"), message("d", "5"))
	var refusing *atomic.Bool
	for life, acked := range [][]string{{"a", "b"}, {"c"}} {
		d, w := mortal(t, c, namespace)
		s := subscribe(t, d, "dying")
		if x := receive(t, s); x.ID != "held" {
			t.Fatalf("life %d begins with %s", life, x.ID)
		}
		if life == 0 {
			refusing = refuseCommits(c)
		}
		for _, id := range acked {
			x := receive(t, s)
			if x.ID != id {
				t.Errorf("life %d receives %s, want %s", life, x.ID, id)
			}
			settle(t, s, x, driver.Ack, 0)
			awaitStandIn(t, c, namespace, int64(x.Ref.Pos)-1)
		}
		w.cut()
		expel(t, c, namespace+"orders:default")
	}
	refusing.Store(false)
	s := subscribe(t, watcher, "heir")
	for _, want := range []string{"held", "d"} {
		x := receive(t, s)
		if x.ID != want {
			t.Errorf("received %s, want %s", x.ID, want)
		}
		settle(t, s, x, driver.Ack, 0)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		st, err := watcher.Stats(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		if st.Groups[0].Acked == 5 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("in the end there is %+v", st.Groups[0])
		}
	}
}

// TestCloseInALongRebalance: whoever leaves while brokers accept no commit stores what it would say before it waits for
// them, not after it has given up.
func TestCloseInALongRebalance(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "l"+rand.Text()[:10]+"."
	leaving, _ := mortal(t, c, namespace)
	heir, _ := mortal(t, c, namespace)
	publish(t, leaving, message("held", "1"), message("a", "2"))
	s := subscribe(t, leaving, "leaving")
	receive(t, s) // held
	acked := receive(t, s)
	refusing := refuseCommits(c)
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if strings.Contains(topicOf(c, req.(*kmsg.ProduceRequest)), "_ferry.retry.") {
			refusing.Store(false) // in time for the last commit
		}
		return nil, nil, false
	})
	settle(t, s, acked, driver.Ack, 0)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	refusing.Store(false)
	x := receive(t, subscribe(t, heir, "heir"))
	if x.ID != "held" || x.Cause != driver.CauseReleased || x.Deliveries != 1 {
		t.Errorf("received %s, %s, delivery %d: what it left in order is taken for lost", x.ID, x.Cause, x.Deliveries)
	}
	state(t, heir, "a", "")
}

// TestCloseWhileJoining: whoever leaves while the group rebalances has to wait for its own JoinGroup. What it
// acknowledged before is committed by then.
func TestCloseWhileJoining(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "l"+rand.Text()[:10]+"."
	leaving, _ := mortal(t, c, namespace)
	operator, _ := mortal(t, c, namespace)
	publish(t, leaving, message("a", "1"))
	s := subscribe(t, leaving, "leaving")
	x := receive(t, s)
	joins, answered, once := make(chan struct{}), make(chan struct{}), sync.Once{}
	c.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		once.Do(func() { close(joins) })
		c.SleepControl(func() { <-answered })
		return nil, nil, false
	})
	leaving.Rejoin("orders", driver.DefaultGroup)
	<-joins
	settle(t, s, x, driver.Ack, 0)
	closed := make(chan error, 1)
	go func() { closed <- s.Close(context.Background()) }()
	state(t, operator, "a", "")
	close(answered)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestResetAfterALongRebalance: what an owner acknowledged while brokers accepted no commit comes again after a reset.
func TestResetAfterALongRebalance(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "l"+rand.Text()[:10]+"."
	dying, w := mortal(t, c, namespace)
	operator, _ := mortal(t, c, namespace)
	if err := dying.EnsureTopic(t.Context(), "orders", driver.TopicConfig{Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	publish(t, dying, message("a", "1"), message("b", "2"))
	s := subscribe(t, dying, "dying")
	first := receive(t, s)
	refusing := refuseCommits(c)
	settle(t, s, first, driver.Ack, 0)
	awaitStandIn(t, c, namespace, int64(first.Ref.Pos)-1)
	w.cut()
	refusing.Store(false)
	expel(t, c, namespace+"orders:default")
	report, err := operator.Reset(t.Context(), "orders", driver.DefaultGroup,
		driver.ResetOptions{To: driver.Position{From: driver.FromBegin}})
	if err != nil || report.Replayed != 1 {
		t.Fatalf("reset: %+v, %v", report, err)
	}
	s = subscribe(t, operator, "heir")
	for _, want := range []string{"a", "b"} {
		if x := receive(t, s); x.ID != want {
			t.Errorf("received %s, want %s", x.ID, want)
		}
	}
}

// TestKillerIsCounted: a message whose holders die as soon as their handlers begin is counted each time, however slow
// the brokers store that, and although its first owner has committed before there was a message to deliver.
func TestKillerIsCounted(t *testing.T) {
	t.Parallel()
	const lives = 5
	c, namespace := fake(t), "l"+rand.Text()[:10]+"."
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if strings.Contains(topicOf(c, req.(*kmsg.ProduceRequest)), "_ferry.retry.") {
			c.SleepControl(func() { time.Sleep(100 * time.Millisecond) }) // longer than a commit takes
		}
		return nil, nil, false
	})
	committed, once := make(chan struct{}), sync.Once{}
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if req.(*kmsg.OffsetCommitRequest).Generation >= 0 { // of a member
			once.Do(func() { close(committed) })
		}
		return nil, nil, false
	})
	for life := 1; life <= lives; life++ {
		d, w := mortal(t, c, namespace)
		s := subscribe(t, d, "x")
		if life == 1 {
			<-committed
			publish(t, d, message("killer", "k"), message("behind", "k"))
		}
		x := receive(t, s)
		if x.Deliveries > 1 {
			begin(t, s, x)
		}
		w.cut()
		if x.ID != "killer" || x.Deliveries != life {
			t.Fatalf("life %d gets %s as delivery %d", life, x.ID, x.Deliveries)
		}
		expel(t, c, namespace+"orders:default")
	}
}

// TestClaimThatTookTooLong: the first claim of an owner waits for a commit. What expires meanwhile is not delivered.
func TestClaimThatTookTooLong(t *testing.T) {
	t.Parallel()
	const ttl = 300 * time.Millisecond
	c := fake(t)
	d, _ := mortal(t, c, "l"+rand.Text()[:10]+".")
	s := subscribe(t, d, "x")
	var slow sync.Once
	c.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		slow.Do(func() { c.SleepControl(func() { time.Sleep(2 * ttl) }) })
		return nil, nil, false
	})
	brief := message("brief", "1")
	brief.TTL = ttl
	publish(t, d, brief, message("lasting", "2"))
	for x := receive(t, s); x.ID != "lasting"; x = receive(t, s) { // in time if the commit was over before
		if age := x.ClaimedAt.Sub(x.PublishedAt); age > ttl+ttl/2 {
			t.Errorf("received %s, %v after it was published", x.ID, age)
		}
	}
}

// TestClaimOfALapsedOwner: the first claim of an owner waits for a commit, and the coordinator does not answer until
// the owner cannot know any more whether the partition is its own. That claim delivers nothing; a new one does when the
// coordinator has answered a question.
func TestClaimOfALapsedOwner(t *testing.T) {
	t.Parallel()
	const lease = time.Minute // of subscribe
	c := fake(t)
	d, _ := mortal(t, c, "l"+rand.Text()[:10]+".")
	s := subscribe(t, d, "x")
	waits, commit, question := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		once.Do(func() { close(waits) })
		c.SleepControl(func() { <-commit })
		return nil, nil, false
	})
	c.ControlKey(int16(kmsg.Heartbeat), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		select {
		case <-waits:
			c.SleepControl(func() { <-question })
		default:
		}
		return nil, nil, false
	})
	publish(t, d, message("a", "k"))
	got := make(chan *driver.Delivery, 1)
	go func() {
		defer close(got)
		if ds, err := s.Receive(t.Context(), 1); err == nil {
			got <- ds[0]
		}
	}()
	<-waits
	for d.Vouched("orders", driver.DefaultGroup) {
		time.Sleep(10 * time.Millisecond)
	}
	lapsed := time.Now()
	close(commit)
	for d.Ready("orders", driver.DefaultGroup) == 0 {
		select {
		case x := <-got:
			t.Fatalf("an owner that does not know whether it is one delivers %+v", x)
		case <-time.After(10 * time.Millisecond):
		}
	}
	close(question)
	select {
	case x := <-got:
		if x == nil || x.ID != "a" || x.LeaseUntil.Before(lapsed.Add(lease)) {
			t.Errorf("received %+v, want a with a lease that begins after %v", x, lapsed)
		}
	case <-time.After(time.Minute):
		t.Error("nothing is delivered")
	}
}

// TestStaleCommits: an owner that was made to leave without knowing it joins again while another has its partition. It
// commits nothing of it any more: what is committed never goes back.
func TestStaleCommits(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "l"+rand.Text()[:10]+"."
	group := namespace + "orders:default"
	stale, w := mortal(t, c, namespace)
	publish(t, stale, message("a", "k"), message("b", "k"), message("c", "k"))
	receive(t, subscribe(t, stale, "stale"))
	release := w.hold()
	defer release()
	expel(t, c, group)
	owner, _ := mortal(t, c, namespace)
	s := subscribe(t, owner, "owner")
	for range 3 {
		settle(t, s, receive(t, s), driver.Ack, 0)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	a := kadm.NewClient(cl)
	committed := func() int64 {
		found, err := a.FetchOffsets(t.Context(), group)
		if err != nil {
			t.Fatal(err)
		}
		o, _ := found.Lookup(namespace+"orders", 0)
		return o.At
	}
	await := func(what string, is func() bool) {
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("in vain: " + what)
			}
		}
	}
	await("all is committed", func() bool { return committed() == 3 })
	release()
	await("who was made to leave joins again", func() bool {
		found, err := a.DescribeGroups(t.Context(), group)
		return err == nil && found[group].State == "Stable" && len(found[group].Members) == 2
	})
	// Whatever it still has to commit is accepted now, or as soon as it knows that it has joined again.
	await("it has committed all it has",
		func() bool { return stale.CommitDirty(t.Context(), "orders", driver.DefaultGroup) == nil })
	if at := committed(); at != 3 {
		t.Fatalf("offset %d is committed after 3", at)
	}
}
