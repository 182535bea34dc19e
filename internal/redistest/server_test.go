package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestEveryVersionAnswers(t *testing.T) {
	t.Parallel()
	want := map[string]string{"redis-6.2": "redis_version:6.2.", "redis-7.0": "redis_version:7.",
		"valkey-9": "valkey_version:9."}
	for _, v := range Versions() {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			s := Single(t, Options{Version: v})
			if info := must(t)(s.Command("INFO", "server")); !strings.Contains(info, want[v]) {
				t.Errorf("%s is not in\n%s", want[v], info)
			}
			must(t)(s.Command("DEBUG", "SLEEP", "0"))
		})
	}
}

func TestAppendOnlyFileSurvivesKill(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"always", "everysec"} {
		t.Run(sync, func(t *testing.T) {
			t.Parallel()
			s := Single(t, Options{AOF: sync})
			before := s.PID()
			for i := range 100 {
				must(t)(s.Command("SET", fmt.Sprint("key", i), fmt.Sprint(i)))
			}
			s.Kill()
			if _, err := s.Command("PING"); err == nil || s.Running() {
				t.Fatal("it answers after Kill")
			}
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			if got := must(t)(s.Command("DBSIZE")); got != "100" {
				t.Errorf("%s of 100 keys are left", got)
			}
			if got := must(t)(s.Command("GET", "key99")); got != "99" || s.PID() == before {
				t.Errorf("key99 = %q in process %d, before %d", got, s.PID(), before)
			}
		})
	}
}

func TestWithoutPersistenceKillForgets(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{})
	must(t)(s.Command("SET", "key", "value"))
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Command("GET", "key"); err != nil || !r.Null {
		t.Errorf("after the restart: %+v, %v", r, err)
	}
}

func TestStoppedServerIsSilent(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error)
	go func() {
		_, err := s.Command("SET", "key", "value")
		answered <- err
	}()
	if state := processState(t, s.PID()); state != "T" {
		t.Errorf("its state is %s, not stopped", state)
	}
	if err := s.Continue(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := s.Stop(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("stopping a dead server: %v", err)
	}
}

// processState is the letter of the kernel; the state of a signalled process changes a moment later.
func processState(t *testing.T, pid int) string {
	t.Helper()
	state := ""
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	_ = until(ctx, func() error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		state = strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))[0]
		if state == "R" || state == "S" {
			return errors.New("still running")
		}
		return nil
	})
	return state
}

func TestMaxMemoryRefusesWrites(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{MaxMemory: "100kb"})
	_, err := s.Command("SET", "key", "value")
	var refused ReplyError
	if !errors.As(err, &refused) || !strings.HasPrefix(string(refused), "OOM ") {
		t.Errorf("above the limit: %v", err)
	}
}

func TestBadConfigurationShowsTheLog(t *testing.T) {
	t.Parallel()
	_, err := StartSingle(t.TempDir(), Options{Config: []string{"no-such-line yes"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-line") {
		t.Errorf("the error does not show the log: %v", err)
	}
}

func TestMissingServerSaysWhatToDo(t *testing.T) {
	t.Parallel()
	if _, _, err := findVersion("redis-5"); err == nil || !strings.Contains(err.Error(), "valkey-9") {
		t.Errorf("an unknown version: %v", err)
	}
	if _, err := (version{file: "redis-5/redis-server"}).find(); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "make setup") {
		t.Errorf("a version without a program: %v", err)
	}
}

func TestPortsAreReserved(t *testing.T) {
	t.Parallel()
	p, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	again := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.number}
	if l, err := net.ListenUDP("udp4", again); err == nil {
		_ = l.Close()
		t.Error("a reserved port can be reserved again")
	}
	p.release()
	// A server that another test is starting holds the socket too, from its fork until its exec.
	l, err := net.ListenUDP("udp4", again)
	for ; err != nil && t.Context().Err() == nil; l, err = net.ListenUDP("udp4", again) {
		runtime.Gosched()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

func TestSharedIsOneServer(t *testing.T) {
	t.Parallel()
	a, b := Shared(t), Shared(t)
	if a != b || !strings.HasPrefix(a.URL(), "redis://127.0.0.1:") {
		t.Errorf("%s and %s", a.URL(), b.URL())
	}
	if _, err := os.Stat(filepath.Join(a.spec.dir, logFile)); err != nil || !strings.Contains(a.Log(), "Ready to accept") {
		t.Errorf("its log: %v\n%s", err, a.Log())
	}
}
