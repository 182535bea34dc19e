package guard_test

import (
	"context"
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
	guardtest.Run(t, guardtest.Harness{
		Virtual: true,
		Open:    func(t testing.TB) guard.Store { return open(t, t.TempDir()) },
		Reopen: func(t testing.TB, s guard.Store) guard.Store {
			t.Helper()
			if err := s.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			return open(t, s.(*guard.Dir).Path())
		},
	})
}
