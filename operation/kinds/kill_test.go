package kinds_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

// childURL tells the child process its broker.
const childURL = "FERRY_TEST_OPERATION_URL"

// told is a driver that says a line before it changes messages, and another behind it, and waits until each was read:
// the child never runs ahead of the kill.
type told struct{ driver.Driver }

func (d told) tell() {
	fmt.Println("step")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func (d told) Move(ctx context.Context, ms []driver.Move) []error {
	d.tell()
	defer d.tell()
	return d.Driver.Move(ctx, ms)
}

func (d told) Delete(ctx context.Context, ts []driver.Target) []error {
	d.tell()
	defer d.tell()
	return d.Driver.Delete(ctx, ts)
}

// workInChild does operations until none is left.
func workInChild() int {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx := context.Background()
	if err := drainInChild(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func drainInChild(ctx context.Context) error {
	opened, err := open.URL(ctx, os.Getenv(childURL))
	if err != nil {
		return err
	}
	b, err := ferry.New(told{opened.Driver()}, ferry.Options{})
	if err != nil {
		return err
	}
	q, err := operation.New(b, kinds.All(b)...)
	if err != nil {
		return err
	}
	w, err := operation.NewWorker(q, operation.WorkerOptions{Lease: time.Second, Every: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	return errors.Join(w.Drain(ctx), b.Close(ctx))
}

// child lets a process work, kills it after some lines, and reports whether it came to its end before.
func child(t *testing.T, url string, lines int) bool {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), childURL+"="+url)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(out); s.Scan(); {
		if lines--; lines == 0 {
			_ = c.Process.Kill()
		}
		_, _ = in.Write([]byte{'\n'}) // fails once it is dead
	}
	err = c.Wait()
	if lines > 0 && err != nil {
		t.Fatalf("the work failed by itself: %v", err)
	}
	return err == nil
}

// An operation whose process is killed again and again ends once, and each message is in one place.
func TestKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "always"})
	for name, url := range map[string]string{"disk": "disk://" + t.TempDir(),
		"redis": server.URL() + "?prefix=k" + rand.Text()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			underKill(t, url)
		})
	}
}

// kills is how often a process is killed: at most, since it may be done before.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("FERRY_KILLS")); err == nil {
		return n
	}
	return 5
}

func underKill(t *testing.T, url string) {
	const messages = 2000
	opened := func(use func(r *rig)) {
		b, err := open.URL(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		use(newRig(t, b))
		if err := b.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	opened(func(r *rig) {
		r.publish("m", messages, 0)
		r.bury(messages)
		r.publish("d", messages/10, time.Hour)
		for _, req := range []operation.Request{
			kinds.Replay{Letters: kinds.Letters{Topic: topic, Where: `id < "m1500"`}}.Request(),
			kinds.Remove{Letters: kinds.Letters{Topic: topic, Where: `id >= "m1800"`}}.Request(),
			kinds.Purge{Messages: kinds.Messages{Topic: topic, States: []ferry.State{driver.StateDelayed},
				Where: `id < "d0150"`}}.Request(),
		} {
			op, err := r.q.Submit(t.Context(), req)
			r.ok(err)
			ids = append(ids, op.ID)
		}
	})
	seed := uint64(time.Now().UnixNano())
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	killed := 0
	for done := false; !done; {
		lines := 1 + random.IntN(6)
		if killed == kills() {
			lines = 0 // to the end
		}
		if done = child(t, url, lines); !done {
			killed++
		}
	}
	t.Logf("seed %d: killed %d times", seed, killed)
	if killed < 3 {
		t.Error("it was hardly killed")
	}
	opened(func(r *rig) {
		takes := 0
		for _, id := range ids {
			op, err := r.q.Get(t.Context(), id)
			if err != nil || op.State != operation.Done {
				r.Errorf("%+v %v", op, err)
			}
			takes += op.Takes
		}
		if takes < killed {
			r.Errorf("%d takes, %d kills", takes, killed)
		}
		r.expect(driver.StateDead, numbered("m", 1500, 1800)...)
		r.expect(driver.StateReady, numbered("m", 0, 1500)...)
		r.expect(driver.StateDelayed, numbered("d", 150, 200)...)
		got := r.settle(1500, driver.Settlement{Outcome: driver.Ack})
		slices.Sort(got)
		if !slices.Equal(got, numbered("m", 0, 1500)) {
			r.Errorf("not each is delivered once: %d different", len(slices.Compact(got)))
		}
		r.audit()
	})
}
