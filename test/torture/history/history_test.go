package history

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// The test binary is also the child that gets killed.
const childDir = "FERRY_HISTORY_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	goleak.VerifyTestMain(m)
}

// child writes as fast as it can, and says on stdout what it has certainly written.
func child(dir string) {
	w, err := Create(dir, "child")
	if err != nil {
		panic(err)
	}
	for seq := int64(1); ; seq++ {
		w.Record(Event{Kind: KindPublish, ID: "m", Seq: seq})
		if seq%100 == 0 {
			if _, err := os.Stdout.WriteString("100\n"); err != nil {
				os.Exit(1)
			}
		}
	}
}

func TestHistorySurvivesKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := 0
	for lines := bufio.NewScanner(out); said < 3000 && lines.Scan(); {
		said += 100
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed: that is the point

	events, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if said < 3000 || len(events) < said {
		t.Fatalf("%d events in the history, the child wrote at least %d before it was killed", len(events), said)
	}
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has sequence %d: a hole", i+1, e.Seq)
		}
	}
}

func TestReadLeavesOutATornLastLineOnly(t *testing.T) {
	t.Parallel()
	whole := []byte(`{"t":1,"e":"start"}` + "\n" + `{"t":2,"e":"stop"}` + "\n")
	events, err := Parse(append(whole, `{"t":3,"e":"pub`...))
	if err != nil || len(events) != 2 {
		t.Fatalf("got %d events and %v, want 2 and no error", len(events), err)
	}
	if _, err := Parse([]byte(`{"t":1,"e":"sta` + "\n" + `{"t":2,"e":"stop"}` + "\n")); err == nil {
		t.Fatal("a broken line in the middle was accepted")
	}
}

func TestManyWritersOneClock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var running sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		w, err := Create(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			running.Go(func() {
				for range 200 {
					w.Record(Event{Kind: KindHandled})
				}
			})
		}
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	events, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, e := range events {
		if e.Note != Stall { // a disk that holds up a write is told of too
			written++
		}
	}
	if written != 1600 {
		t.Fatalf("%d events, want 1600", written)
	}
	for i := 1; i < len(events); i++ {
		if events[i].At < events[i-1].At {
			t.Fatal("events are not in order of time")
		}
	}
}

func TestMuteAndFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := Create(dir, "p")
	if err != nil {
		t.Fatal(err)
	}
	w.Record(Event{Kind: KindStart})
	w.Mute()
	w.Record(Event{Kind: KindStop})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	events, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 1 || cmp.Diff(events[0].Process, "p") != "" {
		t.Fatalf("got %v, want the start of p alone", events)
	}

	broken, err := Create(dir, "q")
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.file.Close(); err != nil {
		t.Fatal(err)
	}
	broken.Record(Event{Kind: KindStart})
	if err := broken.Close(); err == nil {
		t.Fatal("a failed write was not reported")
	}
	if _, err := Read(filepath.Join(dir, "none")); err == nil {
		t.Fatal("an empty directory is no history")
	}
}

func TestWatchSeesAStall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := Create(dir, "p")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { w.Watch(ctx, "", -1) }) // every tick is too late
	for {
		events, err := Read(dir)
		if err == nil && len(events) >= 4 {
			for i, e := range events {
				if want := []Kind{KindFault, KindHeal}[i%2]; e.Kind != want || e.Note != Stall || e.Process != "" {
					t.Errorf("event %d is %+v, want a %s of all", i, e, want)
				}
			}
			break
		}
		runtime.Gosched()
	}
	stop()
	watching.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
