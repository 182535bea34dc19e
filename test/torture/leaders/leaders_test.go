// Package leaders_test kills and pauses leaders, and their Redis: no write of an older epoch is accepted after one of a later epoch, and somebody leads
// again each time. Leaders write late on purpose. It runs for a few rounds, or for FERRY_TORTURE_LEADERS of them.
package leaders_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		fmt.Fprintln(os.Stderr, child())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const processes = 3

func TestLeadersUnderKill(t *testing.T) {
	t.Parallel()
	rounds, err := strconv.Atoi(os.Getenv("FERRY_TORTURE_LEADERS"))
	if err != nil {
		rounds = 6
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d rounds", seed, rounds)
	r := newRun(t, rand.New(rand.NewPCG(seed, 0)))
	for n := range rounds {
		r.awaitEpoch()
		if n == rounds/2 {
			r.server.Kill()
			if err := r.server.Restart(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		r.harm(r.random.IntN(processes), r.random.IntN(2) == 0)
	}
	r.awaitEpoch()
	v := judge(readTape(t, r.tape))
	for _, p := range v.problems {
		t.Error(p)
	}
	if v.late == 0 {
		t.Error("no leader wrote late: nothing is proved")
	}
	t.Logf("%d epochs, %d writes accepted, %d late ones refused", v.epochs, v.accepted, v.late)
}

// run is the processes, and the server that they lead through.
type run struct {
	*testing.T
	random   *rand.Rand
	server   *redistest.Server
	tape     string
	children [processes]*exec.Cmd
	epochs   int // on the tape at the last look
}

func newRun(t *testing.T, random *rand.Rand) *run {
	r := &run{T: t, random: random, server: redistest.Single(t, redistest.Options{AOF: "always"}), tape: filepath.Join(t.TempDir(), "tape")}
	t.Cleanup(func() {
		for i := range r.children {
			r.kill(i)
		}
	})
	for i := range r.children {
		r.start(i)
	}
	return r
}

func (r *run) start(i int) {
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), childURL+"="+r.server.URL(), childTape+"="+r.tape)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		r.Fatal(err)
	}
	r.children[i] = c
}

func (r *run) kill(i int) {
	if c := r.children[i]; c != nil {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed: that is no failure
	}
}

// harm kills a process and starts it again, or pauses it for longer than a lease.
func (r *run) harm(i int, pause bool) {
	if !pause {
		r.kill(i)
		r.start(i)
		return
	}
	p := r.children[i].Process
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		r.Fatal(err)
	}
	time.Sleep(2 * ttl)
	if err := p.Signal(syscall.SIGCONT); err != nil {
		r.Fatal(err)
	}
}

// awaitEpoch waits until two more have led.
func (r *run) awaitEpoch() {
	r.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if n := judge(readTape(r.T, r.tape)).epochs; n >= r.epochs+2 {
			r.epochs = n
			return
		}
		if time.Now().After(deadline) {
			r.Fatal("nobody leads")
		}
	}
}
