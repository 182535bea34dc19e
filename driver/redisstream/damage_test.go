package redisstream_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// A registry that another program has written to does not bring the process down.
func TestGarbledRegistry(t *testing.T) {
	t.Parallel()
	for _, n := range []string{"0", "-1", "1.5", "rubbish", "1000000000"} {
		t.Run(n, func(t *testing.T) {
			w := newWorld(t)
			w.ok(w.c.HSet(w.ctx(), fmt.Sprintf("{%s}/topics", w.prefix), "jobs", n).Err())
			_, err := w.d.Publish(w.ctx(), []*driver.Message{{ID: "a", Topic: "jobs"}}, driver.PublishOptions{})
			if !errors.Is(err, driver.ErrConflict) {
				t.Errorf("Publish: %v, want ErrConflict", err)
			}
			if _, err := w.d.Stats(w.ctx(), "jobs"); !errors.Is(err, driver.ErrConflict) {
				t.Errorf("Stats: %v, want ErrConflict", err)
			}
		})
	}
}
