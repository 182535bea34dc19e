package alert_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/open"
)

const manyRules = 100

// child evaluates rules that all fire, on the broker that FERRY_CHILD names, until it is killed. It reports false in
// the process of the tests.
func child() bool {
	url := os.Getenv("FERRY_CHILD")
	if url == "" {
		return false
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	b, err := open.URL(context.Background(), url)
	if err != nil {
		panic(err)
	}
	never := notify.Func(func(context.Context, notify.Rendered) (notify.Sent, error) {
		panic("this process sends nothing")
	})
	hub, err := notify.New(b, notify.Options{Channels: map[string]notify.Channel{"in": never}})
	if err != nil {
		panic(err)
	}
	collector, err := monitor.NewCollector(b, monitor.CollectorOptions{})
	if err != nil {
		panic(err)
	}
	o := alert.Options{Hub: hub, Collector: collector,
		Channels: map[string][]notify.Target{"ops": {{Channel: "in", To: "ops"}}},
		Sources: []alert.Source{func(context.Context) (map[string]float64, error) {
			return map[string]float64{"active_processors": 1}, nil
		}}}
	for i := range manyRules {
		o.Rules = append(o.Rules, alert.Rule{Name: fmt.Sprintf("rule-%03d", i), When: "active_processors > 0",
			Cooldown: time.Hour})
	}
	w, err := alert.New(b, o)
	if err != nil {
		panic(err)
	}
	panic(w.Run(context.Background()))
}

// The leader is killed while 100 alerts fire: another sends the rest, and each is sent once.
func TestKilledLeader(t *testing.T) {
	url := redistest.Shared(t).URL() + "?prefix=" + strings.ToLower(rand.Text())
	b, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	in := &inbox{}
	stop := runHub(t, b, in)
	defer stop()
	first := spawn(t, url)
	for in.count() < manyRules/10 {
		time.Sleep(time.Millisecond)
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	told := in.count()
	spawn(t, url)
	for in.count() < manyRules || !paid(t, b) {
		time.Sleep(10 * time.Millisecond)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	times := map[string]int{}
	for _, title := range in.titles {
		times[title]++
	}
	if len(times) != manyRules || len(in.titles) != manyRules {
		t.Errorf("%d of %d arrived, %d in all", len(times), manyRules, len(in.titles))
	}
	t.Logf("%d were told before the kill", told)
}

// paid reports whether every alert fires and no notice is owed.
func paid(t *testing.T, b *ferry.Broker) bool {
	t.Helper()
	found, err := alert.List(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range found {
		if a.Owed != "" || a.Notices != 1 {
			return false
		}
	}
	return len(found) == manyRules
}

func (i *inbox) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.titles)
}

// runHub sends to the inbox until the returned function is called.
func runHub(t *testing.T, b *ferry.Broker, in *inbox) func() {
	t.Helper()
	hub, err := notify.New(b, notify.Options{Channels: map[string]notify.Channel{"in": in}})
	if err != nil {
		t.Fatal(err)
	}
	return runtest.Start(t, hub.Run)
}

func spawn(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "FERRY_CHILD="+url)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}
