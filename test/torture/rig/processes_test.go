package rig

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
)

// The memory broker is of no use between processes: each has its own. But whether processes can be started, harmed and
// read after their death does not depend on that.
func openChildren(t *testing.T) *processStage {
	t.Helper()
	s, err := openURL(t.Context(), Options{Broker: "memory://", Dir: t.TempDir(), Bin: built(t)}.withDefaults(pace{}))
	if err != nil {
		t.Fatal(err)
	}
	stage, ok := s.(*processStage)
	if !ok {
		t.Fatalf("%T", s)
	}
	t.Cleanup(func() {
		if err := stage.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return stage
}

func (s *processStage) spawn(t *testing.T, role, name string) *spawned {
	t.Helper()
	p, err := s.start(t.Context(), role, 1, name)
	if err != nil {
		t.Fatal(err)
	}
	child, ok := p.(*spawned)
	if !ok {
		t.Fatalf("%T", p)
	}
	return child
}

// eventually asks until it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func count(t *testing.T, dir, process string, kind history.Kind) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, process+".history"))
	if err != nil {
		return 0 // not yet
	}
	events, err := history.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func TestRealProcesses(t *testing.T) {
	t.Parallel()
	s := openChildren(t)

	t.Run("kill -9 leaves a history", func(t *testing.T) {
		p := s.spawn(t, producer, "producer-1.1")
		eventually(t, "it publishes", func() bool { return count(t, s.o.Dir, "producer-1.1", history.KindPublished) > 50 })
		if err := p.kill(); err != nil {
			t.Fatal(err)
		}
		<-p.done()
		if p.err() != nil {
			t.Errorf("killed on purpose, but: %v", p.err())
		}
		called := count(t, s.o.Dir, "producer-1.1", history.KindPublish)
		if got := count(t, s.o.Dir, "producer-1.1", history.KindPublished); got < 50 || got > called {
			t.Errorf("%d of %d publishes acknowledged", got, called)
		}
	})

	t.Run("SIGSTOP, SIGCONT, SIGTERM", func(t *testing.T) {
		p := s.spawn(t, consumer, "consumer-1.1")
		eventually(t, "it runs", func() bool { return count(t, s.o.Dir, "consumer-1.1", history.KindStart) == 1 })
		if err := p.begin("stop", ""); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is stopped", func() bool { return state(t, p) == "T" })
		if err := p.end("stop"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it goes on", func() bool { return state(t, p) != "T" })
		if err := p.begin("slow", "1s"); err != nil {
			t.Error(err)
		}
		if err := p.end("slow"); err != nil {
			t.Error(err)
		}
		if err := p.begin("slow", "very"); err == nil {
			t.Error("a bad value was sent to the process")
		}
		if err := p.begin("cut", ""); err == nil {
			t.Error("a broker without an address was cut off")
		}
		if err := p.terminate(); err != nil {
			t.Fatal(err)
		}
		<-p.done()
		if p.err() != nil {
			t.Errorf("it did not end well: %v", p.err())
		}
		if count(t, s.o.Dir, "consumer-1.1", history.KindStop) != 1 ||
			count(t, s.o.Dir, "consumer-1.1", history.KindClose) == 0 {
			t.Error("its history does not tell of a clean end")
		}
		if err := p.terminate(); err != nil {
			t.Errorf("ending what is over: %v", err)
		}
	})

	t.Run("those that are over are forgotten", func(t *testing.T) {
		for n := range 3 {
			p := s.spawn(t, producer, fmt.Sprintf("producer-9.%d", n+1))
			if err := p.kill(); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(s.processes); n != 1 {
			t.Errorf("%d processes are kept, want the last one alone", n)
		}
	})

	t.Run("one that ends by itself says why", func(t *testing.T) {
		broken := &processStage{o: s.o, bin: s.bin, backend: backend{url: "gopher://"}, broker: s.broker}
		p := broken.spawn(t, consumer, "consumer-2.1")
		<-p.done()
		if p.err() == nil || !strings.Contains(p.err().Error(), "gopher") {
			t.Errorf("got %v", p.err())
		}
	})
}

// state is the letter that Linux gives to what a process does.
func state(t *testing.T, p *spawned) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Skip("needs /proc")
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return after[:1]
}

func TestEachProcessHasItsProxy(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	p := &spawned{over: make(chan struct{})}
	address, via, err := p.detour("redis://user:secret@"+server.Addr().String()+"/3?x=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.closeProxies() }()
	if want := "redis://user:secret@" + p.proxies[0].Addr() + "/3?x=1"; address != want || via != "" {
		t.Fatalf("%s via %q, want %s", address, via, want)
	}
	c, err := net.Dial("tcp", p.proxies[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	behind, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = behind.Close() }()
	if err := p.begin("latency", "soon"); err == nil {
		t.Error("a latency that is no duration")
	}
	if err := p.begin("cut", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err == nil {
		t.Error("the connection was not cut")
	}
	if err := p.end("cut"); err != nil {
		t.Fatal(err)
	}
}

func TestASetIsReachedThroughProxies(t *testing.T) {
	t.Parallel()
	p := &spawned{over: make(chan struct{})}
	const url = "redis+sentinel://127.0.0.1:1,127.0.0.1:2/ferry"
	address, via, err := p.detour(url, []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.closeProxies() }()
	if address != url || len(p.proxies) != 3 || !strings.Contains(via, `"127.0.0.1:3":"`+p.proxies[2].Addr()+`"`) {
		t.Errorf("%s via %s", address, via)
	}
}
