package disk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// childDir tells a test binary that it is the child of TestKill, and where the store is.
const childDir = "FERRY_TEST_KILL_DIR"

// TestKill kills a process with signal 9 in the middle of its work, several times over one directory. It tells on
// its output what was acknowledged, before and after: nothing that was published may be missing, and nothing that was
// settled may come back.
func TestKill(t *testing.T) {
	if os.Getenv(childDir) != "" {
		childWork(os.Getenv(childDir))
		return
	}
	t.Parallel()
	dir := t.TempDir()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	p := &parent{published: map[string]bool{}, settling: map[string]bool{}, settled: map[string]bool{}}
	for i := range rounds {
		p.run(t, dir, i)
		p.judge(t, dir)
	}
	t.Logf("%d kills, %d messages published, %d settled", rounds, len(p.published), len(p.settled))
}

// parent knows what its children were told.
type parent struct{ published, settling, settled map[string]bool }

// run starts a child and kills it after it has done some work.
func (p *parent) run(t *testing.T, dir string, round int) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestKill$", "-test.v=false")
	c.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprint("FERRY_TEST_KILL_ROUND=", round))
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines, work := bufio.NewScanner(out), 200+rand.IntN(800)
	for n := 0; lines.Scan(); n++ {
		if n == work {
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		p.note(t, lines.Text())
	}
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("the child was not killed, but ended: %v", err)
	}
}

func (p *parent) note(t *testing.T, line string) {
	what, id, ok := strings.Cut(line, " ")
	switch {
	case !ok || !strings.HasSuffix(id, "."):
		return // cut off by the kill
	case what == "published":
		p.published[id] = true
	case what == "settling":
		p.settling[id] = true
	case what == "settled":
		p.settled[id] = true
	default:
		t.Errorf("the child says %q", line)
	}
}

// judge opens what the child left.
func (p *parent) judge(t *testing.T, dir string) {
	t.Helper()
	d := open(t, Options{Dir: dir})
	for id := range p.published {
		_, err := d.Get(ctx, driver.Target{Topic: "jobs", ID: id})
		switch {
		case err != nil && !p.settling[id]:
			t.Errorf("%q was acknowledged, and is lost: %v", id, err)
		case err == nil && p.settled[id]:
			t.Errorf("%q was settled, and is back", id)
		}
	}
	report, err := d.Audit(ctx, "jobs", false)
	if err != nil || len(report.Problems) > 0 || len(report.Stats.Unbalanced()) > 0 {
		t.Errorf("%v, %+v, %v", err, report.Problems, report.Stats.Unbalanced())
	}
	if err := d.Close(ctx); err != nil {
		t.Error(err)
	}
}

// childWork publishes and consumes until it is killed.
func childWork(dir string) {
	d, err := New(context.Background(), Options{Dir: dir, CacheBytes: 10_000})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(2)
	}
	var mu sync.Mutex
	say := func(what, id string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.WriteString(what + " " + id + "\n") // one write: a line is whole, or cut off at its end
	}
	for caller := range 4 {
		go childPublish(d, fmt.Sprintf("r%s-c%d", os.Getenv("FERRY_TEST_KILL_ROUND"), caller), say)
	}
	s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "jobs", Instance: "child"})
	for err == nil {
		var ds []*driver.Delivery
		if ds, err = s.Receive(context.Background(), 3); err != nil {
			break
		}
		for _, x := range ds {
			say("settling", x.ID)
			if err = s.Settle(ctx, []driver.Settlement{{Delivery: x}})[0]; err == nil {
				say("settled", x.ID)
			}
		}
	}
	fmt.Println("error", err)
	os.Exit(3)
}

func childPublish(d *Driver, name string, say func(what, id string)) {
	for i := 0; ; i++ {
		m := &driver.Message{ID: fmt.Sprintf("%s-%d.", name, i), Topic: "jobs", Key: name, Body: make([]byte, 100)}
		if _, err := d.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{}); err != nil {
			fmt.Println("error", err)
			os.Exit(4)
		}
		say("published", m.ID)
		if i%100 == 99 {
			time.Sleep(time.Millisecond) // others get a turn
		}
	}
}
