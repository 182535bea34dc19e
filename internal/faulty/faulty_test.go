package faulty_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What fails is not there, what lost its answer is, and both say so.
func TestFaults(t *testing.T) {
	all := func(err error) [3]error { return [3]error{err, err, err} }
	second := func(err error) [3]error { return [3]error{0: err, 2: err} }
	lost, failed := faulty.Lose(driver.ErrUnknown), faulty.Fail(driver.ErrNotApplied)
	for name, c := range map[string]struct {
		fault  func() faulty.Fault // its own for each Op: it counts
		errs   [3]error
		stored int
	}{
		"none":              {func() faulty.Fault { return nil }, [3]error{}, 3},
		"fail":              {func() faulty.Fault { return failed }, all(driver.ErrNotApplied), 0},
		"lose":              {func() faulty.Fault { return lost }, all(driver.ErrUnknown), 3},
		"fail once":         {func() faulty.Fault { return faulty.Once(failed) }, [3]error{driver.ErrNotApplied}, 2},
		"lose every second": {func() faulty.Fault { return faulty.EverySecond(lost) }, second(driver.ErrUnknown), 3},
		"fail every second": {func() faulty.Fault { return faulty.EverySecond(failed) }, second(driver.ErrNotApplied), 1},
	} {
		t.Run(name, func(t *testing.T) {
			inner, err := memory.New(t.Context(), memory.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d := faulty.New(inner)
			defer func() { _ = d.Close(context.Background()) }()
			d.Set(faulty.Write, c.fault())
			d.Set(faulty.Publish, c.fault())
			for i, want := range c.errs {
				id := string(rune('a' + i))
				_, err := d.Publish(t.Context(), []*driver.Message{{ID: id, Topic: "t"}}, driver.PublishOptions{})
				r := d.KV().Apply(t.Context(), "b", driver.KVOptions{}, driver.Write{Name: id})[0]
				if !errors.Is(err, want) || !errors.Is(r.Err, want) || want == nil && (err != nil || r.Revision == 0) {
					t.Errorf("%d: %v and %v, want %v", i, err, r.Err, want)
				}
			}
			values, err := inner.KV().List(t.Context(), driver.KVQuery{Bucket: "b"})
			published := 0
			if s, gone := inner.Stats(t.Context(), "t"); gone == nil {
				published = int(s.Published)
			}
			if err != nil || len(values.Values) != c.stored || published != c.stored || d.Calls(faulty.Write) != 3 {
				t.Errorf("%d values, %d messages, %d calls, %v", len(values.Values), published, d.Calls(faulty.Write), err)
			}
		})
	}
}
