package guard_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/guardtest"
	"github.com/ferrymq/ferry/guard/store"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, guardtest.Harness{
		Virtual: true,
		Open:    func(testing.TB) guard.Store { return guard.NewMemory(guard.MemoryOptions{}) },
	})
}

func TestDir(t *testing.T) {
	t.Parallel()
	open := func(t testing.TB, dir string) guard.Store {
		t.Helper()
		d, err := guard.OpenDir(dir, guard.DirOptions{CompactAt: 1})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	var dirs sync.Map // of each store
	guardtest.Run(t, guardtest.Harness{
		Virtual: true,
		Open: func(t testing.TB) guard.Store {
			dir := t.TempDir()
			s := open(t, dir)
			dirs.Store(s, dir)
			return s
		},
		Reopen: func(t testing.TB, s guard.Store) guard.Store {
			t.Helper()
			if err := s.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			dir, _ := dirs.Load(s)
			again := open(t, dir.(string))
			dirs.Store(again, dir)
			return again
		},
	})
}

// TestMarksAreForgottenWhenTheirTimeIsOver: none stays, whatever the windows of those beside it are, and none goes
// early.
func TestMarksAreForgottenWhenTheirTimeIsOver(t *testing.T) {
	const short, long, all = 10 * time.Second, time.Hour, 1000
	synctest.Test(t, func(t *testing.T) {
		s := guard.NewMemory(guard.MemoryOptions{})
		done := func(name string, window time.Duration) {
			for i := range all {
				r := store.MarkRequest{Name: name, ID: fmt.Sprint(i), Window: window}
				if i%7 == 3 {
					r.Window = long
				}
				m, err := s.Begin(t.Context(), r)
				if r.Token = m.Token; err != nil || !m.Ours {
					t.Fatalf("%+v: %+v, %v", r, m, err)
				}
				if err := s.Complete(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
		}
		known := func(name string) (n int) {
			for i := range all {
				m, err := s.Begin(t.Context(), store.MarkRequest{Name: name, ID: fmt.Sprint(i)})
				if err != nil {
					t.Fatal(err)
				}
				if m.Done {
					n++
				}
			}
			return n
		}
		done("a", short)
		time.Sleep(short)
		done("b", short) // forgets what it can
		if n := known("a"); n != 143 {
			t.Errorf("%d marks are left of the first, want those of the long window", n)
		}
		if n := known("b"); n != all {
			t.Errorf("%d marks are left of the second, want all", n)
		}
		time.Sleep(long)
		done("c", short)
		if n := known("b"); n != 0 {
			t.Errorf("%d marks are left of the second after the longest window", n)
		}
	})
}
