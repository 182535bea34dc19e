package spooldisk_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/spool/spooldisk"
)

const (
	childURL  = "FERRY_TEST_SPOOL_URL"
	childRoot = "FERRY_TEST_SPOOL_ROOT"
	childLife = "FERRY_TEST_SPOOL_LIFE"
	childKeys = "FERRY_TEST_SPOOL_KEYS"
	topic     = "orders"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if os.Getenv(childURL) != "" {
		fmt.Fprintln(os.Stderr, child())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(
		"github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}

// gone is a broker in memory that can be away.
type gone struct {
	*memory.Driver
	mu   sync.Mutex
	away bool
}

func newGone(t testing.TB) *gone {
	t.Helper()
	d, err := memory.New(context.Background(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &gone{Driver: d, away: true}
}

func (g *gone) back() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away = false
}

func (g *gone) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	g.mu.Lock()
	away := g.away
	g.mu.Unlock()
	if !away {
		return g.Driver.Publish(ctx, msgs, o)
	}
	rs := make([]driver.Receipt, len(msgs))
	for i := range rs {
		rs[i].Err = driver.NewError(driver.ErrNotApplied, "away", "", nil)
	}
	return rs, rs[0].Err
}

// Close leaves the broker open: it outlives its spools.
func (g *gone) Close(context.Context) error { return nil }

func open(t testing.TB, broker driver.Driver, root string) *spool.Driver {
	t.Helper()
	s, err := spooldisk.Open(context.Background(), broker,
		spooldisk.Options{Root: root, Spool: spool.Options{Every: 50 * time.Millisecond}, Disk: disk.Options{Reserve: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, d driver.Driver, ids ...string) []driver.Receipt {
	t.Helper()
	var ms []*driver.Message
	for _, id := range ids {
		ms = append(ms, &driver.Message{ID: id, Topic: topic, Key: "k", Body: []byte(id)})
	}
	rs, err := d.Publish(context.Background(), ms, driver.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func shut(t testing.TB, d driver.Driver) {
	t.Helper()
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// drained waits until nothing is in the spool.
func drained(t testing.TB, d *spool.Driver) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if d.SpoolStats().Messages == 0 {
			return
		}
	}
	t.Fatalf("the spool does not drain: %+v", d.SpoolStats())
}

// ids returns what the broker has of the topic, in order.
func ids(t testing.TB, d driver.Driver) string {
	t.Helper()
	var all []string
	q := driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady, Limit: 1000}
	for {
		page, err := d.Browse(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			all = append(all, e.ID)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return strings.Join(all, " ")
		}
	}
}

// TestLives: a process has the directory that its last life had, another has another; what one left that is gone is
// taken over, in order.
func TestLives(t *testing.T) {
	t.Parallel()
	root, broker := filepath.Join(t.TempDir(), "spool"), newGone(t)
	a, b := open(t, broker, root), open(t, broker, root)
	if rs := put(t, a, "a1", "a2"); !rs[0].Spooled {
		t.Error("not spooled")
	}
	put(t, b, "b1")
	slots, err := spooldisk.Slots(root)
	if err != nil || strings.Join(slots, " ") != "0001 0002" {
		t.Errorf("%v %v", slots, err)
	}
	shut(t, a)
	a = open(t, broker, root) // its own again
	if s := a.SpoolStats(); s.Messages != 2 || s.Adopted != 0 {
		t.Errorf("%+v", s)
	}
	shut(t, a)
	shut(t, b)
	c := open(t, broker, root) // both are gone
	defer shut(t, c)
	if s := c.SpoolStats(); s.Messages != 3 || s.Adopted != 1 {
		t.Errorf("%+v", s)
	}
	put(t, c, "c1")
	broker.back()
	drained(t, c)
	if got := ids(t, broker); got != "a1 a2 b1 c1" {
		t.Error(got)
	}
}

// TestABrokenNeighbour: a directory that cannot be opened keeps nobody from publishing, nor from taking over another
// one.
func TestABrokenNeighbour(t *testing.T) {
	t.Parallel()
	root, broker := t.TempDir(), newGone(t)
	a, b, c := open(t, broker, root), open(t, broker, root), open(t, broker, root)
	put(t, c, "c1")
	shut(t, a)
	shut(t, b)
	shut(t, c)
	if err := os.WriteFile(filepath.Join(root, "0002", "FERRY"), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, broker, root)
	defer shut(t, d)
	if s := d.SpoolStats(); s.Adopted != 1 {
		t.Errorf("%+v", s)
	}
	broker.back()
	drained(t, d)
	if got := ids(t, broker); got != "c1" {
		t.Error(got)
	}
}

// TestBadDirectories: what cannot be used is told, and what is somebody else's is left alone.
func TestBadDirectories(t *testing.T) {
	t.Parallel()
	try := func(root string) error {
		s, err := spooldisk.Open(t.Context(), newGone(t), spooldisk.Options{Root: root})
		if err == nil {
			shut(t, s)
		}
		return err
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := try(file); !errors.Is(err, driver.ErrNotApplied) {
		t.Errorf("a file: %v", err)
	}
	if err := try(""); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("nothing: %v", err)
	}
	foreign := t.TempDir()
	if err := os.MkdirAll(filepath.Join(foreign, "0001", "theirs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := try(foreign); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("what is not a store: %v", err)
	}
	exposed := t.TempDir()
	if err := os.Mkdir(filepath.Join(exposed, "0001"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(exposed, "0001"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := try(exposed); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("where everybody may write: %v", err)
	}
	if os.Geteuid() != 0 { // whom no mode stops
		readOnly := t.TempDir()
		if err := os.Chmod(readOnly, 0o500); err != nil {
			t.Fatal(err)
		}
		if err := try(readOnly); !errors.Is(err, driver.ErrNotApplied) {
			t.Errorf("read-only: %v", err)
		}
	}
}

// TestAFullDisk: publishers are told, and everything goes on when there is room. A reserve larger than any disk is a
// disk that is full.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	broker := newGone(t)
	s, err := spooldisk.Open(t.Context(), broker,
		spooldisk.Options{Root: t.TempDir(), Spool: spool.Options{Every: 50 * time.Millisecond},
			Disk: disk.Options{Reserve: 1 << 60}})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, s)
	rs, err := s.Publish(t.Context(), []*driver.Message{{ID: "1", Topic: topic, Key: "k"}}, driver.PublishOptions{})
	if !errors.Is(err, driver.ErrFull) || rs[0].Spooled || s.SpoolStats().Messages != 0 {
		t.Errorf("%v, %+v, %+v", err, rs, s.SpoolStats())
	}
	broker.back()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err = s.Publish(t.Context(), []*driver.Message{{ID: "2", Topic: topic, Key: "k"}},
			driver.PublishOptions{}); err == nil {
			return
		}
	}
	t.Error(err)
}

// TestKills: a producer and its neighbour are killed again and again, and their Redis, too. Whatever they were told is
// accepted is in Redis at the end, each key in order, over all lives of the producer. It has a few lives, or
// FERRY_TORTURE_SPOOL of them.
func TestKills(t *testing.T) {
	if testing.Short() {
		t.Skip("kills servers")
	}
	t.Parallel()
	lives, err := strconv.Atoi(os.Getenv("FERRY_TORTURE_SPOOL"))
	if err != nil {
		lives = 3
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d lives", seed, lives)
	r := &run{T: t, random: rand.New(rand.NewPCG(seed, 0)), server: redistest.Single(t, redistest.Options{AOF: "always"}),
		root: t.TempDir(), accepted: map[string]bool{}}
	for life := range lives {
		r.live(life)
	}
	broker, err := redis.New(t.Context(), redis.Options{URL: r.server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, broker, r.root)
	defer shut(t, s)
	drained(t, s)
	judge(t, s, r.accepted)
	t.Logf("%d lives, %d messages accepted, %d of them spooled", lives, len(r.accepted), r.spooled)
}

// run is what processes were told over all their lives.
type run struct {
	*testing.T
	random *rand.Rand
	server *redistest.Server
	root   string

	mu       sync.Mutex
	accepted map[string]bool
	spooled  int
}

// live starts the producer, then its neighbour, takes their Redis away, and kills them: while it is away, or while it
// is back and they drain.
func (r *run) live(life int) {
	r.Helper()
	stored, spooled := 50+r.random.IntN(300), 50+r.random.IntN(400)
	drains := r.random.IntN(2) == 0
	seen, quota := 0, spooled
	var neighbour *exec.Cmd
	var wait sync.WaitGroup
	producer, lines := r.start("k", life)
	for lines.Scan() {
		how, ok := r.note(lines.Text())
		switch {
		case !ok: // cut off by the kill
			continue
		case neighbour == nil: // the producer has the first directory
			var others *bufio.Scanner
			neighbour, others = r.start("n"+strconv.Itoa(life), life)
			wait.Go(func() {
				for others.Scan() {
					r.note(others.Text())
				}
			})
		}
		if seen++; seen == stored {
			r.server.Kill()
		}
		if how == "spooled" {
			quota--
		}
		if quota == 0 && drains {
			drains, quota = false, 50
			if err := r.server.Restart(); err != nil {
				r.Fatal(err)
			}
		}
		if quota == 0 || seen == stored+3000 { // or all was drained before
			quota = -1
			_ = producer.Process.Kill()
			_ = neighbour.Process.Kill()
		}
	}
	var exit *exec.ExitError
	if err := producer.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		r.Errorf("the producer was not killed, but ended: %v", err)
	}
	wait.Wait()
	_ = neighbour.Wait() // killed, or it began while Redis was away
	r.server.Kill()
	if err := r.server.Restart(); err != nil {
		r.Fatal(err)
	}
}

func (r *run) start(keys string, life int) (*exec.Cmd, *bufio.Scanner) {
	r.Helper()
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), childURL+"="+r.server.URL(), childRoot+"="+r.root, childKeys+"="+keys,
		fmt.Sprintf("%s=%d", childLife, life))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := c.Start(); err != nil {
		r.Fatal(err)
	}
	return c, bufio.NewScanner(out)
}

// note writes down what a process says was accepted. False: the line was cut off by a kill.
func (r *run) note(line string) (how string, ok bool) {
	how, id, _ := strings.Cut(line, " ")
	id, ok = strings.CutSuffix(id, ".")
	if !ok {
		return how, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepted[id] = true
	if how == "spooled" {
		r.spooled++
	}
	return how, true
}

// judge compares what was accepted with what the broker has. Each message says in which life which of its key it is;
// one whose publisher was killed before it was told may be there, too, and so may repeats.
func judge(t *testing.T, broker driver.Driver, accepted map[string]bool) {
	t.Helper()
	type place struct {
		key  string
		life int
	}
	seen, next, latest := map[string]bool{}, map[place]int{}, map[string]int{}
	for _, id := range strings.Fields(ids(t, broker)) {
		key, life, n := parse(t, id)
		if seen[id] {
			continue
		}
		seen[id] = true
		if n != next[place{key, life}] || life < latest[key] {
			t.Fatalf("%s comes where %d of life %d is due", id, next[place{key, life}], max(life, latest[key]))
		}
		latest[key] = life
		next[place{key, life}]++
	}
	for id := range accepted {
		if !seen[id] {
			t.Errorf("%s was accepted, and is lost", id)
		}
	}
}

func parse(t *testing.T, id string) (key string, life, n int) {
	t.Helper()
	if _, err := fmt.Sscanf(strings.ReplaceAll(id, "-", " "), "%s %d %d", &key, &life, &n); err != nil {
		t.Fatalf("id %q", id)
	}
	return key, life, n
}

// child publishes for some keys until it is killed, and tells what was accepted.
func child() error {
	ctx := context.Background()
	broker, err := redis.New(ctx, redis.Options{URL: os.Getenv(childURL)})
	if err != nil {
		return err
	}
	s, err := spooldisk.Open(ctx, broker, spooldisk.Options{Root: os.Getenv(childRoot), Disk: disk.Options{Reserve: 1}})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for k := range 4 {
		go func() {
			for i := 0; ; i++ {
				key := os.Getenv(childKeys) + "." + strconv.Itoa(k)
				m := &driver.Message{ID: fmt.Sprintf("%s-%s-%d", key, os.Getenv(childLife), i), OwnID: true, Topic: topic, Key: key}
				rs, err := s.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{})
				if err != nil {
					failed <- err
					return
				}
				how := "stored"
				if rs[0].Spooled {
					how = "spooled"
				}
				_, _ = os.Stdout.WriteString(how + " " + m.ID + ".\n") // one write: a line is whole, or cut off at its end
			}
		}()
	}
	return <-failed
}
