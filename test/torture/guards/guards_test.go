// Package guards_test kills processes with guards: no limit admits more than it may, no slot is lost, no work is done
// again once it is marked, and no message is lost. It runs for a few seconds, or for FERRY_TORTURE_GUARDS messages of
// each key.
package guards_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	guardredis "github.com/ferrymq/ferry/guard/redis"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		fmt.Fprintln(os.Stderr, child())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const processes, keys = 3, 5

func TestGuardsUnderKill(t *testing.T) {
	t.Parallel()
	each, err := strconv.Atoi(os.Getenv("FERRY_TORTURE_GUARDS"))
	if err != nil {
		each = 40
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d messages of each of %d keys", seed, each, keys)
	r := newRun(t, rand.New(rand.NewPCG(seed, 0)))
	r.publish(each)
	r.harm(each)
	r.await(keys * each)
	for i := range r.children {
		r.kill(i)
	}
	v := judge(readTape(t, r.tape.file.Name()))
	v.check(t, keys, each)
	t.Logf("%d kills, at most %d handlers at once", r.kills, v.overlaps)
	r.slotsAreFree()
}

// run is the processes, and the server that their broker and their guards share.
type run struct {
	*testing.T
	random   *rand.Rand
	server   *redistest.Server
	broker   *ferry.Broker
	tape     *tape
	children [processes]*exec.Cmd
	kills    int
}

func newRun(t *testing.T, random *rand.Rand) *run {
	r := &run{T: t, random: random, server: redistest.Single(t, redistest.Options{AOF: "always"})}
	var err error
	if r.broker, err = open.URL(t.Context(), r.server.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.broker.Close(context.Background()) })
	if r.tape, err = openTape(filepath.Join(t.TempDir(), "tape")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.tape.file.Close() })
	for i := range r.children {
		r.start(i)
	}
	t.Cleanup(func() {
		for i := range r.children {
			r.kill(i)
		}
	})
	return r
}

func (r *run) start(i int) {
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), childURL+"="+r.server.URL(), childStore+"="+r.server.URL(),
		childTape+"="+r.tape.file.Name())
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		r.Fatal(err)
	}
	r.children[i] = c
}

// kill ends a process with SIGKILL, and writes down that it cannot have run on for long.
func (r *run) kill(i int) {
	c := r.children[i]
	if c == nil {
		return
	}
	r.children[i] = nil
	_ = c.Process.Kill()
	_ = c.Wait() // it was killed: that is no failure
	r.tape.write(event{Kind: killed, Process: c.Process.Pid})
	r.kills++
}

func (r *run) publish(each int) {
	var ms []*ferry.Message
	for i := range each {
		for k := range keys {
			ms = append(ms, &ferry.Message{Topic: topic, ID: fmt.Sprintf("k%d-%d", k, i), Key: fmt.Sprint("k", k),
				Body: fmt.Appendf(nil, "k%d:%d", k, i)})
		}
	}
	if _, err := r.broker.PublishBatch(r.Context(), ms); err != nil {
		r.Fatal(err)
	}
}

// harm kills processes at random, and once the server, while messages flow.
func (r *run) harm(each int) {
	rounds := max(4, each/10)
	for n := range rounds {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Duration(100+r.random.IntN(400)) * time.Millisecond):
		}
		if n == rounds/2 {
			r.server.Kill()
			if err := r.server.Restart(); err != nil {
				r.Fatal(err)
			}
			continue
		}
		i := r.random.IntN(processes)
		r.kill(i)
		r.start(i)
	}
}

// await waits until everything is acknowledged.
func (r *run) await(total int) {
	r.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s, err := r.broker.Driver().Stats(r.Context(), topic)
		if err == nil && s.Groups[0].Dead > 0 {
			r.Fatalf("%+v", s.Groups[0])
		}
		if err == nil && int(s.Groups[0].Acked) == total {
			if problems := s.Unbalanced(); len(problems) > 0 {
				r.Error(problems)
			}
			return
		}
		if time.Now().After(deadline) {
			r.Fatalf("%+v, %v", s, err)
		}
	}
}

// slotsAreFree takes every slot: those of the dead are free when their leases have ended.
func (r *run) slotsAreFree() {
	r.Helper()
	s, err := guardredis.Open(r.Context(), guardredis.Options{URL: r.server.URL()})
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	for held, deadline := 0, time.Now().Add(time.Minute); held < slots; {
		got, err := s.Acquire(r.Context(), store.SlotRequest{Limit: "downstream", Key: "x", Max: slots, Lease: time.Hour})
		switch {
		case err == nil && got.Held:
			held++
		case time.Now().After(deadline):
			r.Fatalf("only %d of %d slots are free, %v", held, slots, err)
		default:
			time.Sleep(50 * time.Millisecond)
		}
	}
}
