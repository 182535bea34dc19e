package guard_test

import (
	"context"
	"sync"
	"testing"

	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/guardtest"
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
