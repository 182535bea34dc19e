package guard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
)

func openDir(t testing.TB, dir string) guard.Store {
	t.Helper()
	d, err := guard.OpenDir(dir, guard.DirOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

func block(t testing.TB, s guard.Store, key string) {
	t.Helper()
	if err := s.Change(context.Background(),
		guard.Change{Action: guard.ActionBlock, Limit: "user", Key: key, Actor: "a", Reason: "r"}); err != nil {
		t.Fatal(err)
	}
}

func blockedKeys(t testing.TB, s guard.Store) (keys []string) {
	t.Helper()
	q := guard.Query{Kind: guard.KindBlocked, Max: 1000}
	for {
		p, err := s.List(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range p.Keys {
			keys = append(keys, k.Key)
		}
		if q.Cursor = p.Next; p.Next == "" {
			return keys
		}
	}
}

// TestJournalAfterACrash cuts the journal at every byte: what was whole stays, nothing else appears.
func TestJournalAfterACrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openDir(t, dir)
	for i := range 3 {
		block(t, d, fmt.Sprint(i))
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "guard.journal"))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		torn := t.TempDir()
		name := filepath.Join(torn, "guard.journal")
		if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		d := openDir(t, torn)
		lines := strings.Count(string(whole[:cut]), "\n")
		if keys := blockedKeys(t, d); len(keys) != lines {
			t.Fatalf("cut at %d: %v are blocked, want %d", cut, keys, lines)
		}
		block(t, d, "new")
		if err := d.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if keys := blockedKeys(t, openDir(t, torn)); len(keys) != lines+1 {
			t.Fatalf("cut at %d, then written on: %v", cut, keys)
		}
	}
}

func TestDamagedJournalIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openDir(t, dir)
	block(t, d, "a")
	block(t, d, "b")
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "guard.journal")
	text, _ := os.ReadFile(name)
	text[20] ^= 1
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := guard.OpenDir(dir, guard.DirOptions{})
	wantError(t, err, driver.ErrInvalid, "damaged at byte 0")
}

func TestDirHasOneOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openDir(t, dir)
	_, err := guard.OpenDir(dir, guard.DirOptions{})
	wantError(t, err, driver.ErrConflict, "in use by another process")
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	openDir(t, dir)
	if err := d.Change(t.Context(),
		guard.Change{Action: guard.ActionBlock, Limit: "user"}); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	_, err = guard.OpenDir("", guard.DirOptions{})
	wantError(t, err, driver.ErrInvalid, "no directory")
}

// TestJournalIsCompacted: it stays small however much is changed, by many at once.
func TestJournalIsCompacted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := guard.OpenDir(dir, guard.DirOptions{CompactAt: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				r := store.MarkRequest{Name: "once", ID: fmt.Sprint(g, i%10), Window: time.Hour}
				if err := d.Complete(context.Background(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	block(t, d, "a")
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "guard.journal"))
	if err != nil || info.Size() > 80<<10 {
		t.Errorf("%v, %v; want it compacted", info, err)
	}
	d = openDir(t, dir)
	for g := range 8 {
		for i := range 10 {
			if m, err := d.Begin(t.Context(), store.MarkRequest{Name: "once", ID: fmt.Sprint(g, i)}); err != nil || !m.Done {
				t.Fatalf("%+v, %v", m, err)
			}
		}
	}
	if keys := blockedKeys(t, d); len(keys) != 1 {
		t.Errorf("%v are blocked", keys)
	}
}

// TestKilledOwner kills a process that blocks keys at a random moment: what it was told is blocked, is.
func TestKilledOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := 0
	for round := range 3 {
		c := exec.Command(os.Args[0], "-test.run=^TestOwnerToBeKilled$")
		c.Env = append(os.Environ(), "GUARD_DIR="+dir, "GUARD_FROM="+strconv.Itoa(acknowledged))
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for stop := acknowledged + 20 + 7*round; acknowledged < stop; {
			var n int
			if _, err := fmt.Fscanf(out, "%d\n", &n); err != nil {
				t.Fatal(err)
			}
			acknowledged = n + 1
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		d := openDir(t, dir)
		blocked := map[string]bool{}
		for _, key := range blockedKeys(t, d) {
			blocked[key] = true
		}
		for i := range acknowledged {
			if !blocked[strconv.Itoa(i)] {
				t.Errorf("key %d was acknowledged and is not blocked after round %d", i, round)
			}
		}
		if err := d.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOwnerToBeKilled is the process of TestKilledOwner.
func TestOwnerToBeKilled(t *testing.T) {
	dir := os.Getenv("GUARD_DIR")
	if dir == "" {
		t.Skip("runs as a process of its own")
	}
	d, err := guard.OpenDir(dir, guard.DirOptions{CompactAt: 2 << 10})
	if err != nil {
		t.Fatal(err)
	}
	from, _ := strconv.Atoi(os.Getenv("GUARD_FROM"))
	for i := from; ; i++ {
		block(t, d, strconv.Itoa(i))
		fmt.Println(i)
	}
}
