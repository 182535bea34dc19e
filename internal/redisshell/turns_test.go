package redisshell

import (
	"context"
	"errors"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	for connections, most := range map[int]int{1: 1, 2: 1, 5: 2, 20: 10} {
		turns := NewTurns(connections)
		for range most {
			if err := turns.Take(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := turns.Take(ended); !errors.Is(err, driver.ErrNotApplied) || !errors.Is(err, context.Canceled) {
			t.Errorf("of %d connections claims have more than %d: %v", connections, most, err)
		}
		turns.GiveBack()
		if err := turns.Take(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
