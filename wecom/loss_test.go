package wecom_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
	"github.com/ferrymq/ferry/worker"
)

// tortured is how many messages a torture wants; 0 in a test.
func tortured() int {
	n, _ := strconv.Atoi(os.Getenv("FERRY_TORTURE_WECOM")) // nothing is no number
	return n
}

// Thousands of messages, one in twenty given again, empty pages, two pullers, and a broker that loses answers and is
// away: each message is handled once, in the order of its customer. In a torture the server is killed, too, and comes
// back after ten seconds.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	count := cmp.Or(tortured(), 10_000)
	for name, open := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := open(t)
			s := newStorm(t, at.url, 500)
			s.start(s.handler, s.pulls)
			s.talk(count, at)
			s.finish(count, name != "kafka")
		})
	}
}

// storm is a vendor, two pullers and two handlers on one broker.
type storm struct {
	*testing.T
	vendor    *wecomtest.Server
	drivers   []*faulty.Driver
	brokers   []*ferry.Broker
	pipelines []*wecom.Pipeline
	callback  string
	dedup     *guard.Dedup
	ended     sync.WaitGroup
	end       context.CancelFunc

	mu      sync.Mutex
	next    map[string]int // of each customer
	handled int
	wrong   []string
}

// instances is how many processes there are.
const instances = 2

func newStorm(t *testing.T, url string, page int) *storm {
	t.Helper()
	s := &storm{T: t, next: map[string]int{},
		vendor: wecomtest.Start(wecomtest.Options{Again: 20, Empty: 7, Page: page, Tokenless: 1 << 20})}
	t.Cleanup(s.vendor.Close)
	o := ferry.Options{Logger: slog.New(slog.DiscardHandler)}
	for i := range instances {
		if i == 0 || !strings.HasPrefix(url, "disk:") { // which one process has at a time
			b, err := open.URL(t.Context(), url, o)
			s.ok(err)
			t.Cleanup(func() { _ = b.Close(context.Background()) })
			s.brokers = append(s.brokers, b)
		}
		d := faulty.New(s.brokers[len(s.brokers)-1].Driver())
		s.drivers = append(s.drivers, d)
		b, err := ferry.New(d, o)
		s.ok(err)
		p, err := wecom.New(b, s.vendor.Config(), wecom.Options{})
		s.ok(err)
		t.Cleanup(p.Close)
		s.pipelines = append(s.pipelines, p)
	}
	var err error
	s.dedup, err = guard.NewDedup(guard.NewMemory(guard.MemoryOptions{}), guard.DedupOptions{Name: "msgid"})
	s.ok(err)
	h := httptest.NewServer(s.pipelines[0].Callback())
	t.Cleanup(h.Close)
	s.callback = h.URL
	return s
}

func (s *storm) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// start runs some roles in each process.
func (s *storm) start(roles ...func(instance int) func(context.Context) error) {
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	for i := range instances {
		for _, role := range roles {
			run := role(i)
			s.ended.Go(func() {
				if err := run(ctx); err != nil {
					s.Error(err)
				}
			})
		}
	}
}

func (s *storm) pulls(instance int) func(context.Context) error { return s.pipelines[instance].Run }

func (s *storm) handler(instance int) func(context.Context) error {
	w := worker.New(s.brokers[min(instance, len(s.brokers)-1)], worker.Options{Instance: fmt.Sprint("handler-", instance)})
	worker.Handle(w, wecom.Topic, s.handle, worker.Use(s.dedup.Middleware()))
	return w.Run
}

// handle notes a message: it must be the next one of its customer.
func (s *storm) handle(_ context.Context, m *ferry.Msg[wecom.Message]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := strconv.Itoa(s.next[m.Value.User]); m.Value.Text.Content != want && len(s.wrong) < 10 {
		s.wrong = append(s.wrong, fmt.Sprintf("%s wrote %s, want %s", m.Value.User, m.Value.Text.Content, want))
	}
	s.next[m.Value.User]++
	s.handled++
	return nil
}

const (
	stormAccounts = 4
	stormUsers    = 200
	// stormBurst is how many messages come before a callback does.
	stormBurst = 250
)

// talk has customers write, and the vendor call back. In the middle the broker is not well.
func (s *storm) talk(count int, at place) {
	said := map[string]int{}
	var weather sync.WaitGroup
	for i := range count {
		s.say(fmt.Sprint("kf", i%stormAccounts), fmt.Sprint("user-", i%stormUsers), said)
		if i == count/3 {
			weather.Go(func() { s.storm(at) })
		}
		if i%stormBurst == 0 {
			s.call(fmt.Sprint("kf", i/stormBurst%stormAccounts))
		}
	}
	weather.Wait()
	for i := range stormAccounts {
		s.call(fmt.Sprint("kf", i))
	}
}

// say has a customer write how much was said before.
func (s *storm) say(account, user string, said map[string]int) {
	s.vendor.Say(account, user, strconv.Itoa(said[user]))
	said[user]++
}

// storm is the time in which the broker loses answers, is away, and loses answers again.
func (s *storm) storm(at place) {
	lost, away := faulty.Lose(errLost), faulty.Fail(errAway)
	for _, faults := range [][2]faulty.Fault{{lost, nil}, {away, away}, {lost, nil}} {
		disturb(faults[0], faults[1], s.drivers...)
		time.Sleep(time.Second / 3)
	}
	disturb(nil, nil, s.drivers...)
	s.vendor.ExpireTokens()
	if tortured() > 0 {
		s.outage(at)
	}
}

// outage is how long the server is away in a torture.
const outage = 10 * time.Second

// outage kills the server and starts it again. A disk has none: it takes nothing meanwhile.
func (s *storm) outage(at place) {
	if at.server == nil {
		disturb(faulty.Fail(errAway), faulty.Fail(errAway), s.drivers...)
		time.Sleep(outage)
		disturb(nil, nil, s.drivers...)
		return
	}
	at.server.Kill()
	time.Sleep(outage)
	if err := at.server.Restart(); err != nil {
		s.Error(err)
	}
}

// patience is how long a storm may stand still before it is given up: brokers are killed for ten seconds in it.
const patience = 2 * time.Minute

// call sends a callback until it is taken, as the vendor does, only more patiently.
func (s *storm) call(account string) {
	c := s.vendor.Callback(account)
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		status, err := c.Send(s.Context(), s.callback)
		s.ok(err)
		if status == http.StatusOK {
			return
		}
		if time.Since(begun) > patience {
			s.Errorf("the callback of %s was answered with %d for %v", account, status, patience)
			return
		}
	}
}

// finish waits until everything is handled, and judges. Where ids are known for long nothing is published twice either.
func (s *storm) finish(count int, exact bool) {
	s.Helper()
	for last, since := 0, time.Now(); last < count; time.Sleep(10 * time.Millisecond) {
		if n := s.seen(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > patience {
			s.Fatalf("%d handled of %d, and none for %v", last, count, patience)
		}
	}
	s.end()
	s.ended.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handled != count || len(s.wrong) > 0 {
		s.Errorf("%d handled of %d; %v", s.handled, count, s.wrong)
	}
	stats, err := s.brokers[0].Driver().Stats(context.Background(), wecom.Topic)
	s.ok(err)
	if exact && stats.Published != uint64(count) {
		s.Errorf("%d published of %d", stats.Published, count)
	}
	s.Logf("%d published of %d, %+v", stats.Published, count, s.pipelines[0].Stats())
}

func (s *storm) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handled
}
