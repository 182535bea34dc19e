package spool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/spool"
)

// TestDriver: a spool is a driver like the one it wraps.
func TestDriver(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Driver {
			d, err := spool.New(context.Background(), newMemory(t, 0), newMemory(t, largeBody), spool.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Want: newMemory(t, 0).Capabilities(),
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return d.(*spool.Driver).Unwrap().(*memory.Driver).StoreRaw(ctx, topic, raw)
		},
		Virtual: true,
		Steps:   500,
	})
}

// virtual runs a test in virtual time.
func virtual(t *testing.T, o spool.Options, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newWorld(t, o)) })
}

func TestAHealthyBrokerGetsEverything(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		for i := range 5 {
			if w.accept(w.msg("k", fmt.Sprint(i))) {
				w.Error("spooled")
			}
		}
		w.want("k", "0", "1", "2", "3", "4")
	})
}

// TestAnOutage: what is published meanwhile is spooled, and in the broker soon after it is back, in order of the keys.
func TestAnOutage(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		w.accept(w.msg("a", "1"))
		w.away()
		for i := range 10 {
			for _, k := range []string{"a", "b", ""} {
				if !w.accept(w.msg(k, fmt.Sprint(i+2))) {
					w.Errorf("%q %d is in the broker", k, i)
				}
			}
		}
		s := w.SpoolStats()
		if s.Messages != 30 || s.Keys != 2 || s.AwaySince.IsZero() || s.Spooled != 30 || s.Bytes == 0 {
			w.Errorf("%+v", s)
		}
		time.Sleep(time.Hour)
		w.back()
		time.Sleep(1100 * time.Millisecond)
		if s := w.SpoolStats(); s.Messages != 0 || s.Bytes != 0 || s.Keys != 0 || s.Drained != 30 || !s.AwaySince.IsZero() {
			w.Errorf("a second after the broker is back: %+v", s)
		}
		w.want("a", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11")
		w.want("b", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11")
		if w.accept(w.msg("a", "12")) {
			w.Error("spooled although the broker is back and the key is drained")
		}
	})
}

// TestAKeyStaysBehindWhatIsSpooledOfIt: and no other message does.
func TestAKeyStaysBehindWhatIsSpooledOfIt(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		w.away()
		w.accept(w.msg("k", "1"))
		// Back, but without room for the key: what is spooled of it cannot be drained.
		w.broker.set(func() {
			w.broker.fails = func(m *driver.Message) error {
				if m.Key == "k" && string(m.Body) == "1" {
					return driver.NewError(driver.ErrFull, "full", "", nil)
				}
				return nil
			}
		})
		time.Sleep(5 * time.Second)
		if !w.accept(w.msg("k", "2")) {
			w.Error("a message overtook one of its key in the spool")
		}
		if w.accept(w.msg("other", "1")) || w.accept(w.msg("", "1")) {
			w.Error("spooled because of a key that is not its own")
		}
		rs, err := w.Publish(context.Background(),
			[]*driver.Message{w.msg("x", "1"), w.msg("k", "3"), w.msg("x", "2"), w.msg("k", "4")}, driver.PublishOptions{})
		if err != nil || rs[0].Spooled || !rs[1].Spooled || rs[2].Spooled || !rs[3].Spooled {
			w.Errorf("%v, %+v", err, rs)
		}
		w.back()
		w.drained()
		w.want("k", "1", "2", "3", "4")
		w.want("x", "1", "2")
	})
}

// TestAMessageIsNotSpooledBehindALaterOne: of one call, when the broker took a later one of the key.
func TestAMessageIsNotSpooledBehindALaterOne(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		first := true
		w.broker.fails = func(*driver.Message) error {
			defer func() { first = false }()
			if first {
				return refused(nil)
			}
			return nil
		}
		rs, err := w.Publish(context.Background(), []*driver.Message{w.msg("k", "1"), w.msg("k", "2")},
			driver.PublishOptions{})
		if !errors.Is(err, driver.ErrNotApplied) || rs[0].Spooled || rs[0].Err == nil || rs[1].Err != nil {
			w.Errorf("%v, %+v", err, rs)
		}
	})
}

// TestALostAnswer: an id that the producer chose is stored once, although the broker had stored it when its answer was
// lost.
func TestALostAnswer(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		w.broker.fails, w.broker.late = func(*driver.Message) error {
			return driver.NewError(driver.ErrUnknown, "lost", "", nil)
		}, true
		m := w.msg("k", "1")
		m.OwnID = true
		if !w.accept(m) || !w.accept(w.msg("k", "2")) {
			w.Error("not spooled")
		}
		w.consume()                 // and it is gone from there, but for its id
		time.Sleep(2 * time.Second) // drained, and again the answer is lost: again and again
		w.back()
		w.drained()
		w.want("k", "2")
	})
}

// TestABrokerThatHangs: callers get their receipt within their deadline, and only one in a second waits at all.
func TestABrokerThatHangs(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		w.broker.hangs = true
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		rs, err := w.Publish(ctx, []*driver.Message{w.msg("k", "1")}, driver.PublishOptions{})
		if err != nil || !rs[0].Spooled || ctx.Err() != nil {
			w.Errorf("%v, %+v, %v", err, rs, ctx.Err())
		}
		start := time.Now()
		for range 1000 {
			w.accept(w.msg("k", "more"))
		}
		if took := time.Since(start); took > 0 {
			w.Errorf("a thousand publishes took %v", took)
		}
		w.back()
		w.drained()
	})
}

// TestABrokerThatIsAwayIsTriedOnceASecond.
func TestABrokerThatIsAwayIsTriedOnceASecond(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		w.away()
		for i := range 600 {
			w.accept(w.msg(fmt.Sprint("k", i), "x"))
			time.Sleep(100 * time.Millisecond)
		}
		n := 0
		w.broker.set(func() { n = w.broker.tries })
		if n < 55 || n > 62 {
			w.Errorf("%d tries in a minute", n)
		}
	})
}

// TestTheEndOfAnOutageIsNoticedWithoutABacklog: where nothing was spooled, publishers try.
func TestTheEndOfAnOutageIsNoticedWithoutABacklog(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		w.away()
		m := w.msg("k", "1")
		if _, err := w.Publish(context.Background(), []*driver.Message{m},
			driver.PublishOptions{Atomic: true}); !errors.Is(err, driver.ErrNotApplied) {
			w.Errorf("an atomic publish: %v", err)
		}
		w.back()
		time.Sleep(1100 * time.Millisecond)
		if w.accept(w.msg("k", "2")) {
			w.Error("spooled although the broker is back")
		}
	})
}

// TestTimesCountFromAcceptance: delays, schedules, times to live and dedup windows.
func TestTimesCountFromAcceptance(t *testing.T) {
	expired := 0
	virtual(t, spool.Options{Hooks: spool.Hooks{Expired: func(*driver.Message) { expired++ }}}, func(w *world) {
		w.away()
		start := time.Now()
		add := func(body string, change func(m *driver.Message)) {
			m := w.msg("", body)
			change(m)
			w.accept(m)
		}
		add("delay", func(m *driver.Message) { m.Delay = 10 * time.Minute })
		add("delay over", func(m *driver.Message) { m.Delay = time.Minute })
		add("at", func(m *driver.Message) { m.At = start.Add(20 * time.Minute) })
		add("ttl", func(m *driver.Message) { m.TTL = 10 * time.Minute })
		add("ttl over", func(m *driver.Message) { m.TTL = time.Minute })
		add("dedup", func(m *driver.Message) { m.DedupID, m.DedupWindow = "d", time.Minute })
		time.Sleep(4 * time.Minute)
		add("dedup again", func(m *driver.Message) { m.DedupID, m.DedupWindow = "d", time.Minute })
		time.Sleep(time.Minute)
		w.back()
		w.drained()
		got := map[string]driver.Entry{}
		for _, state := range []driver.State{driver.StateReady, driver.StateDelayed} {
			page, err := w.broker.Browse(context.Background(),
				driver.Query{Topic: topic, Group: driver.DefaultGroup, State: state})
			if err != nil {
				w.Fatal(err)
			}
			for _, e := range page.Entries {
				got[string(e.Body)] = e
			}
		}
		near := func(body string, at time.Time, after time.Duration) {
			w.Helper()
			if d := at.Sub(start.Add(after)); d < -time.Second || d > time.Second {
				w.Errorf("%s: %v, want %v after it was accepted", body, at.Sub(start), after)
			}
		}
		near("delay", got["delay"].DueAt, 10*time.Minute)
		near("at", got["at"].DueAt, 20*time.Minute)
		near("ttl", got["ttl"].ExpiresAt, 10*time.Minute)
		if got["delay over"].State != driver.StateReady || got["dedup"].Message == nil || got["dedup again"].Message == nil {
			w.Errorf("%+v", got)
		}
		if _, there := got["ttl over"]; there || expired != 1 || w.SpoolStats().Expired != 1 {
			w.Errorf("a message whose TTL ended in the spool: %d, %+v", expired, w.SpoolStats())
		}
	})
}

// TestWhatTheSpoolCannotGiveIsRefused: a level beyond its own, atomic publishes, and halves of transactions.
func TestWhatTheSpoolCannotGiveIsRefused(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		w.away()
		w.accept(w.msg("k", "1"))
		publish := func(o driver.PublishOptions) (driver.Receipt, error) {
			rs, err := w.Publish(context.Background(), []*driver.Message{w.msg("k", "2")}, o)
			return rs[0], err
		}
		if _, err := publish(driver.PublishOptions{Level: driver.Synced}); !errors.Is(err, driver.ErrUnsupported) {
			w.Errorf("a level that the broker never gives: %v", err)
		}
		if _, err := publish(driver.PublishOptions{Atomic: true}); !errors.Is(err, driver.ErrNotApplied) {
			w.Errorf("atomic: %v", err)
		}
		if r, err := publish(driver.PublishOptions{Level: driver.InMemory}); err != nil || !r.Spooled {
			w.Errorf("%v, %+v", err, r)
		}
		half := w.msg("", "3")
		half.Delay = driver.Hold
		if r := w.put(half); !errors.Is(r.Err, driver.ErrNotApplied) || r.Spooled {
			w.Errorf("a half: %+v", r)
		}
	})
}

// better gives more than the local store of these tests.
type better struct{ driver.Driver }

func (b better) Capabilities() driver.Capabilities {
	c := b.Driver.Capabilities()
	c.Levels = append(c.Levels, driver.Replicated(1))
	return c
}

func TestALevelIsNeverLowered(t *testing.T) {
	t.Parallel()
	f := &faulty{Driver: newMemory(t, 0), fails: refused}
	d, err := spool.New(t.Context(), better{f}, newMemory(t, largeBody), spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rs, err := d.Publish(t.Context(), []*driver.Message{{ID: "1", Topic: topic, Key: "k"}},
		driver.PublishOptions{Level: driver.Replicated(1)})
	if !errors.Is(err, driver.ErrNotApplied) || rs[0].Spooled || !strings.Contains(err.Error(), "replicated(1)") {
		t.Errorf("%v, %+v", err, rs)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFull: a spool that is full says so, and takes more when the broker has taken some.
func TestFull(t *testing.T) {
	full := 0
	virtual(t, spool.Options{MaxMessages: 3, MaxBytes: 10_000,
		Hooks: spool.Hooks{Full: func(*driver.Message, error) { full++ }}}, func(w *world) {
		w.away()
		if r := w.put(w.msg("k", strings.Repeat("x", 20_000))); !errors.Is(r.Err, driver.ErrFull) {
			w.Errorf("too many bytes: %+v", r)
		}
		for i := range 3 {
			w.accept(w.msg("k", fmt.Sprint(i)))
		}
		r := w.put(w.msg("k", "3"))
		var e *driver.Error
		if !errors.Is(r.Err, driver.ErrFull) || !errors.As(r.Err, &e) || e.Hint == "" || r.Spooled {
			w.Errorf("%+v", r)
		}
		if full != 2 || w.SpoolStats().Refused != 2 {
			w.Errorf("%d, %+v", full, w.SpoolStats())
		}
		w.back()
		w.drained()
		w.accept(w.msg("k", "4"))
		w.want("k", "0", "1", "2", "4")
	})
}

// TestABoundedTopic: a broker without room for a message gets no later one of its key, although there is room for it by
// then.
func TestABoundedTopic(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		ctx := context.Background()
		if err := w.broker.EnsureTopic(ctx, topic, driver.TopicConfig{MaxMessages: 2}); err != nil {
			w.Fatal(err)
		}
		w.away()
		for i := range 10 {
			w.accept(w.msg("k", fmt.Sprint(i)))
			w.accept(w.msg("", fmt.Sprint(i)))
		}
		raise := func() {
			if err := w.broker.AlterTopic(ctx, topic, driver.TopicConfig{MaxMessages: 100}); err != nil {
				w.Error(err)
			}
		}
		refusals := 0
		w.broker.set(func() {
			w.broker.fails = func(m *driver.Message) error {
				if m.Key != "k" || string(m.Body) < "3" {
					return nil
				}
				if refusals++; refusals == 2 { // in the middle of a call, if there is more than one of the key in it
					raise()
				}
				return nil
			}
		})
		time.Sleep(10 * time.Second)
		raise()
		w.drained()
		w.want("k", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	})
}

// TestUnknownStaysUnknown: where the spool is full, too.
func TestUnknownStaysUnknown(t *testing.T) {
	virtual(t, spool.Options{MaxMessages: 1}, func(w *world) {
		w.broker.fails = func(*driver.Message) error { return driver.NewError(driver.ErrUnknown, "lost", "", nil) }
		rs, _ := w.Publish(context.Background(), []*driver.Message{w.msg("k", "1"), w.msg("k", "2")}, driver.PublishOptions{})
		if !rs[0].Spooled || !errors.Is(rs[1].Err, driver.ErrUnknown) || errors.Is(rs[1].Err, driver.ErrFull) {
			w.Errorf("%+v", rs)
		}
	})
}

// TestEmergency: a full spool with an emergency file goes on, and the file has everything of the message.
func TestEmergency(t *testing.T) {
	dir := t.TempDir()
	var files []string
	virtual(t, spool.Options{MaxMessages: 1, Emergency: dir,
		Hooks: spool.Hooks{Emergency: func(_ *driver.Message, file string, err error) {
			files = append(files, file)
			if err != nil {
				t.Error(err)
			}
		}}}, func(w *world) {
		w.away()
		w.accept(w.msg("k", "1"))
		m := w.msg("k", "2")
		m.Delay, m.TTL = time.Minute, time.Hour
		if !w.accept(m) || w.SpoolStats().Emergencies != 1 {
			w.Errorf("%+v", w.SpoolStats())
		}
		name := filepath.Join(dir, "spool-"+time.Now().UTC().Format("20060102")+".jsonl")
		text, err := os.ReadFile(name)
		if err != nil || !slices.Equal(files, []string{name}) {
			w.Fatalf("%v, %v", err, files)
		}
		for _, part := range []string{`"id":"m2"`, `"key":"k"`, `"body":"2"`, `"state":"delayed"`,
			`"due_at":"2000-01-01T00:01:00.000Z"`, `"expires_at":"2000-01-01T01:00:00.000Z"`} {
			if !strings.Contains(string(text), part) {
				w.Errorf("%s is missing in %s", part, text)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			w.Fatal(err)
		}
		files = nil
	})
}

func TestNoEmergencyFileIsToldOf(t *testing.T) {
	t.Parallel()
	if _, err := spool.New(t.Context(), newMemory(t, 0), newMemory(t, largeBody),
		spool.Options{Emergency: filepath.Join(t.TempDir(), "no")}); !errors.Is(err, driver.ErrInvalid) {
		t.Error(err)
	}
}

// TestWhatTheBrokerRefusesForGoodIsADeadLetter: of the local store, and its key goes on.
func TestWhatTheBrokerRefusesForGoodIsADeadLetter(t *testing.T) {
	var dead []string
	virtual(t, spool.Options{Hooks: spool.Hooks{Dead: func(m *driver.Message, err error) {
		dead = append(dead, m.ID+": "+err.Error())
	}}}, func(w *world) {
		w.away()
		for _, b := range []string{"1", "bad", "2"} {
			w.accept(w.msg("k", b))
		}
		w.broker.set(func() {
			w.broker.fails = func(m *driver.Message) error {
				if string(m.Body) == "bad" {
					return driver.NewError(driver.ErrTooLarge, "too large", "", nil)
				}
				return nil
			}
		})
		w.drained()
		w.want("k", "1", "2")
		page, err := w.Local().Browse(context.Background(),
			driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateDead})
		if err != nil || len(page.Entries) != 1 || page.Entries[0].Dead.Reason != driver.ReasonRejected || len(dead) != 1 ||
			w.SpoolStats().Dead != 1 {
			w.Fatalf("%v, %+v, %v, %+v", err, page, dead, w.SpoolStats())
		}
		r, err := spool.Decode(page.Entries[0].Body)
		if err != nil || string(r.Body) != "bad" || r.Key != "k" {
			w.Errorf("%v, %+v", err, r)
		}
	})
}

// TestAnotherLife: what is in the store when a spool is opened goes first, and its keys stay behind it.
func TestAnotherLife(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		w.away()
		for i := range 2500 {
			w.accept(w.msg("k", fmt.Sprint(i)))
		}
		before := w.SpoolStats()
		if err := w.Close(context.Background()); err != nil {
			w.Fatal(err)
		}
		if r := w.put(w.msg("k", "late")); !errors.Is(r.Err, driver.ErrClosed) {
			w.Errorf("after Close: %+v", r)
		}
		w.open(spool.Options{})
		s := w.SpoolStats()
		if s.Messages != before.Messages || s.Bytes != before.Bytes || s.Keys != 1 {
			w.Errorf("%+v, before %+v", s, before)
		}
		if !w.accept(w.msg("k", "2500")) {
			w.Error("it overtook what an earlier life had spooled")
		}
		w.back()
		w.drained()
		got := w.stored("k")
		for i := range 2501 {
			if i >= len(got) || got[i] != fmt.Sprint(i) {
				w.Fatalf("%d of %d messages are in order", i, len(got))
			}
		}
	})
}

// TestAdoption: what a process that died has left goes through the spool of another, before that publishes, and while
// it does.
func TestAdoption(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		w.away()
		orphan := w.local
		m := w.msg("k", "1")
		m.Delay = time.Hour
		w.accept(m)
		w.accept(w.msg("k", "2"))
		time.Sleep(30 * time.Minute)
		if err := w.Close(context.Background()); err != nil {
			w.Fatal(err)
		}
		w.local = newMemory(w, largeBody)
		orphans := make(chan driver.Driver, 1)
		orphans <- orphan
		w.open(spool.Options{Orphan: func(context.Context) (driver.Driver, error) {
			select {
			case o := <-orphans:
				return o, nil
			default:
				return nil, nil
			}
		}})
		if s := w.SpoolStats(); s.Adopted != 2 || s.Messages != 2 {
			w.Errorf("%+v", s)
		}
		if !w.accept(w.msg("k", "3")) {
			w.Error("it overtook what was adopted")
		}
		later := newMemory(w, largeBody)
		other, err := spool.New(context.Background(), &faulty{Driver: newMemory(w, 0), fails: refused},
			kept{later}, spool.Options{})
		if err != nil {
			w.Fatal(err)
		}
		if _, err := other.Publish(context.Background(), []*driver.Message{w.msg("k", "4")},
			driver.PublishOptions{}); err != nil {
			w.Fatal(err)
		}
		if err := other.Close(context.Background()); err != nil {
			w.Fatal(err)
		}
		orphans <- later
		time.Sleep(31 * time.Second)
		w.back()
		w.drained()
		w.want("k", "2", "3", "4")
		page, err := w.broker.Browse(context.Background(), driver.Query{Topic: topic, State: driver.StateDelayed})
		if err != nil || len(page.Entries) != 1 {
			w.Fatalf("%v, %+v", err, page)
		}
		if left := time.Until(page.Entries[0].DueAt); left < 28*time.Minute || left > 30*time.Minute {
			w.Errorf("it is due in %v", left)
		}
	})
}

// TestAnAdoptionThatFails keeps nobody from publishing, and is tried again.
func TestAnAdoptionThatFails(t *testing.T) {
	virtual(t, spool.Options{}, func(w *world) {
		w.away()
		orphan := w.local
		w.accept(w.msg("k", "1"))
		if err := w.Close(context.Background()); err != nil {
			w.Fatal(err)
		}
		w.local = newMemory(w, largeBody)
		w.back()
		tries := make(chan int, 1)
		tries <- 0
		w.open(spool.Options{Orphan: func(context.Context) (driver.Driver, error) {
			n := <-tries
			tries <- n + 1
			switch n {
			case 0:
				return nil, driver.NewError(driver.ErrFull, "the disk is full", "", nil)
			case 1:
				return orphan, nil
			}
			return nil, nil
		}})
		w.accept(w.msg("x", "1"))
		time.Sleep(31 * time.Second)
		w.drained()
		w.want("k", "1")
	})
}

// TestManyOutages: publishers that go on while the broker comes and goes, forgets to answer and hangs. Nothing is lost,
// and each key is in order.
func TestManyOutages(t *testing.T) {
	virtual(t, spool.Options{Try: 500 * time.Millisecond}, func(w *world) {
		const publishers, each = 8, 400
		var all sync.WaitGroup
		for p := range publishers {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(p), 1))
				for i := range each {
					m := &driver.Message{ID: fmt.Sprintf("%d-%d", p, i), OwnID: true, Topic: topic, Key: fmt.Sprint("p", p),
						Body: fmt.Appendf(nil, "%d", i)}
					for w.put(m).Err != nil {
						time.Sleep(10 * time.Millisecond)
					}
					time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
				}
			})
		}
		stop := make(chan struct{})
		var harm sync.WaitGroup
		harm.Go(func() {
			random := rand.New(rand.NewPCG(9, 9))
			for {
				select {
				case <-stop:
					w.back()
					return
				case <-time.After(time.Duration(random.IntN(700)) * time.Millisecond):
				}
				w.broker.set(func() {
					w.broker.fails, w.broker.late, w.broker.hangs = nil, false, false
					switch random.IntN(5) {
					case 0:
						w.broker.fails = refused
					case 1:
						w.broker.fails = func(*driver.Message) error { return driver.NewError(driver.ErrUnknown, "lost", "", nil) }
					case 2:
						w.broker.fails, w.broker.late = func(*driver.Message) error {
							return driver.NewError(driver.ErrUnknown, "lost", "", nil)
						}, true
					case 3:
						w.broker.hangs = true
					}
				})
			}
		})
		all.Wait()
		close(stop)
		harm.Wait()
		w.drained()
		for p := range publishers {
			got := w.stored(fmt.Sprint("p", p))
			for i := range each {
				if i >= len(got) || got[i] != fmt.Sprint(i) {
					w.Fatalf("publisher %d: %d of %d messages are in order: %v", p, i, len(got), got[max(0, i-3):min(len(got), i+3)])
				}
			}
		}
		if s := w.SpoolStats(); s.Spooled == 0 || s.Failures == 0 {
			w.Errorf("nothing was spooled: %+v", s)
		}
	})
}

// TestHooks: they tell of the broker, and one that panics harms nothing.
func TestHooks(t *testing.T) {
	var events []string
	virtual(t, spool.Options{Hooks: spool.Hooks{
		Away: func(error) { events = append(events, "away"); panic("away") },
		Back: func(after time.Duration) {
			events = append(events, fmt.Sprint("back ", after.Round(time.Second)))
			panic("back")
		},
	}}, func(w *world) {
		w.away()
		w.accept(w.msg("k", "1"))
		time.Sleep(time.Minute)
		w.back()
		w.drained()
		if !slices.Equal(events, []string{"away", "back 1m0s"}) && !slices.Equal(events, []string{"away", "back 1m1s"}) {
			w.Error(events)
		}
	})
}

// TestRefusedOptions.
func TestRefusedOptions(t *testing.T) {
	t.Parallel()
	ok := newMemory(t, largeBody)
	for name, open := range map[string]func() (*spool.Driver, error){
		"no broker": func() (*spool.Driver, error) { return spool.New(t.Context(), nil, ok, spool.Options{}) },
		"no store":  func() (*spool.Driver, error) { return spool.New(t.Context(), ok, nil, spool.Options{}) },
		"negative": func() (*spool.Driver, error) {
			return spool.New(t.Context(), newMemory(t, 0), ok, spool.Options{MaxBytes: -1})
		},
		"small": func() (*spool.Driver, error) { return spool.New(t.Context(), ok, newMemory(t, 0), spool.Options{}) },
	} {
		if _, err := open(); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDecode: records of any kind are read or refused.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := spool.Decode(data)
		if (err == nil) != (r.Message != nil) {
			t.Errorf("%v, %+v", err, r)
		}
	})
}
