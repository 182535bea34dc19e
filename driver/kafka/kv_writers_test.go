package kafka_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// writerEnv makes the test binary a process that writes values until it is killed: what it does, where, and the
// namespace.
const writerEnv = "FERRY_KAFKA_WRITER"

// writer says what it has done, line by line. It ends with its input.
func writer(how string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	words := strings.Fields(how)
	d, err := kafka.New(context.Background(), kafka.Options{Brokers: words[1:2], Namespace: words[2],
		InternalPartitions: 1})
	if err != nil {
		return err
	}
	apply := func(w driver.Write) driver.WriteResult {
		return d.KV().Apply(context.Background(), "things", driver.KVOptions{}, w)[0]
	}
	if words[0] == "count" {
		for {
			vs, err := d.KV().Get(context.Background(), "things", "counter")
			if err != nil {
				continue // the machine is slow
			}
			w := driver.Write{Name: "counter", Data: fmt.Append(nil, number(vs[0].Data)+1), If: driver.Condition(vs[0].Revision)}
			if vs[0].Revision == 0 {
				w.If = driver.Absent
			}
			if r := apply(w); r.Err == nil {
				fmt.Println(string(w.Data))
			}
		}
	}
	lease := apply(driver.Write{Name: "lease", Data: []byte("writer"), TTL: 2 * time.Second, If: driver.Absent})
	if lease.Err != nil {
		return lease.Err
	}
	for {
		r := apply(driver.Write{Name: "state", Data: []byte("writer"),
			Fence: &driver.Fence{Name: "lease", Epoch: lease.Epoch}})
		switch {
		case r.Err == nil:
			fmt.Println("wrote")
		case errors.Is(r.Err, driver.ErrLeaseLost):
			fmt.Println("lost")
			select {}
		}
	}
}

func number(data []byte) int {
	n, _ := strconv.Atoi(string(data))
	return n
}

// startWriter starts one, and returns what it says.
func startWriter(t *testing.T, how string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+how)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill() // it may be gone
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

// TestKilledWriter: whoever is killed in the middle of a write has made it or has not, and the next one need not wait
// for anything.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "v"+rand.Text()[:10]+"."
	d := open(t, c, namespace)
	defer end(t, d)
	put(t, d, driver.Write{Name: "counter", Data: []byte("0")})
	for range 2 {
		cmd, says := startWriter(t, "count "+c.Addrs()[0]+" "+namespace)
		said := 0
		for range 10 {
			if !says.Scan() {
				t.Fatal("the writer ended")
			}
			said = number(says.Bytes())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		for says.Scan() { // what it had said before
			said = number(says.Bytes())
		}
		there := get(t, d, "counter")
		if n := number(there.Data); n != said && n != said+1 {
			t.Errorf("the counter is %d, and the writer said %d", n, said)
		}
		r := write(t, d, driver.Write{Name: "counter", Data: there.Data, If: driver.Condition(there.Revision)})
		t.Logf("the next write was applied %v after the kill", time.Since(killed))
		// a record that was on its way
		if late := errors.Is(r.Err, driver.ErrConflict) && number(r.Data) == said+1; r.Err != nil && !late {
			t.Errorf("the next write: %v", r.Err)
		}
	}
}

// TestPausedWriter: a writer that is stopped for longer than its lease writes nothing under it when it goes on.
func TestPausedWriter(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "v"+rand.Text()[:10]+"."
	d := open(t, c, namespace)
	defer end(t, d)
	put(t, d, driver.Write{Name: "state", Data: []byte("nobody")})
	cmd, says := startWriter(t, "lease "+c.Addrs()[0]+" "+namespace)
	if !says.Scan() {
		t.Fatal("the writer ended")
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var mine driver.WriteResult
	for held := get(t, d, "lease"); ; held = mine.Value {
		if _, err := d.KV().Wait(t.Context(), "things", "lease", held.Revision); held.Revision != 0 && err != nil {
			t.Fatal(err)
		}
		if mine = write(t, d, driver.Write{Name: "lease", Data: []byte("me"), TTL: time.Hour,
			If: driver.Absent}); mine.Err == nil {
			break
		}
		if !errors.Is(mine.Err, driver.ErrConflict) {
			t.Fatal(mine.Err)
		}
	}
	put(t, d, driver.Write{Name: "state", Data: []byte("me"), Fence: &driver.Fence{Name: "lease", Epoch: mine.Epoch}})
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for says.Text() == "wrote" && says.Scan() { // before it was stopped
	}
	if says.Text() != "lost" {
		t.Errorf("the writer says %q", says.Text())
	}
	if v := get(t, d, "state"); string(v.Data) != "me" {
		t.Errorf("the state is %q", v.Data)
	}
}

// TestIncrementsOnABadNetwork: writers whose connections break again and again, on a log that is trimmed meanwhile,
// repeat what they do not know under the same request: each increment is made once. Whoever reads later agrees with
// them.
func TestIncrementsOnABadNetwork(t *testing.T) {
	t.Parallel()
	const writers, cuts = 3, 40
	c, namespace := kafkatest.Shared(t), "v"+rand.Text()[:10]+"."
	opened := func(w *wire) *kafka.Driver {
		d, err := kafka.New(t.Context(), kafka.WithSnapshots(kafka.Options{Brokers: c.Addrs(), Namespace: namespace,
			InternalPartitions: 1, Dial: w.dial}, 2<<10))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end(t, d) })
		return d
	}
	put(t, opened(&wire{}), driver.Write{Name: "counter", Data: []byte("0")})
	wires, stops := make([]*wire, writers), make([]func() int, writers)
	for i := range wires {
		wires[i] = &wire{}
		stops[i] = count(t, opened(wires[i]), fmt.Sprint(i))
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := range cuts {
		<-tick.C
		wires[i%writers].cut()
		wires[i%writers].mend()
	}
	made := 0
	for _, stop := range stops {
		made += stop()
	}
	whole, fresh := opened(&wire{}), opened(&wire{})
	t.Logf("%d increments, and the log begins at %d", made, logStart(t, c.Addrs(), namespace))
	if v := get(t, whole, "counter"); number(v.Data) != made {
		t.Errorf("the counter is %s after %d increments", v.Data, made)
	}
	sameValues(t, "a fresh reader", listing(t, fresh), listing(t, whole))
}

// count makes increments until the returned function is called, which says how many.
func count(t *testing.T, d driver.Driver, who string) (stop func() int) {
	made, enough, over := 0, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-enough:
				return
			default:
				increment(t, d, fmt.Sprint(who, "/", made))
				made++
			}
		}
	}()
	return func() int {
		close(enough)
		<-over
		return made
	}
}

// increment makes one of the counter, however often it takes.
func increment(t *testing.T, d driver.Driver, name string) {
	w := driver.Write{Name: "counter"}
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if w.Request == "" {
			vs, err := d.KV().Get(ctx, "things", "counter")
			if err != nil {
				cancel()
				if t.Context().Err() != nil {
					return
				}
				continue
			}
			w.Data, w.If, w.Request = fmt.Append(nil, number(vs[0].Data)+1), driver.Condition(vs[0].Revision),
				fmt.Sprint(name, "/", try)
		}
		r := d.KV().Apply(ctx, "things", driver.KVOptions{}, w)[0]
		cancel()
		switch {
		case r.Err == nil, t.Context().Err() != nil:
			return
		case errors.Is(r.Err, driver.ErrConflict):
			w.Request = ""
		case !errors.Is(r.Err, driver.ErrUnknown) && !errors.Is(r.Err, driver.ErrNotApplied):
			t.Errorf("an increment: %v", r.Err)
			return
		}
	}
}
