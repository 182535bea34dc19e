package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// TestOneOutcome: an error says that something was not applied, or that nobody knows, never both, whatever the errors
// it is made of say. Why it happened can still be asked.
func TestOneOutcome(t *testing.T) {
	t.Parallel()
	unknown := Unsure("the record", context.DeadlineExceeded)
	closed := Unsure("the record", kgo.ErrClientClosed)
	refused := driver.NewError(driver.ErrNotApplied, "refused", "", context.Canceled)
	large := driver.NewError(driver.ErrTooLarge, "large", "", nil)
	for name, c := range map[string]struct {
		got   error
		kinds []error // and no other
	}{
		"a part is unknown":         {NotApplied(unknown, "t", "h"), []error{driver.ErrNotApplied, context.DeadlineExceeded}},
		"a part is in a closed one": {NotApplied(closed, "t", "h"), []error{driver.ErrNotApplied, kgo.ErrClientClosed}},
		"a part is too large":       {NotApplied(large, "t", "h"), []error{driver.ErrTooLarge}},
		"a part was refused":        {NotApplied(refused, "t", "h"), []error{driver.ErrNotApplied, context.Canceled}},
		"its kind is not known": {NotApplied(context.Canceled, "t", "h"),
			[]error{driver.ErrNotApplied, context.Canceled}},
		"it cannot be found out": {Unknown(refused, "t", "h"), []error{driver.ErrUnknown, context.Canceled}},
		"one is unknown, one not applied": {Joined(refused, nil, unknown),
			[]error{driver.ErrUnknown, context.Canceled, context.DeadlineExceeded}},
		"one is unknown": {Joined(nil, unknown), []error{driver.ErrUnknown, context.DeadlineExceeded}},
		"none":           {Joined(nil, nil), nil},
	} {
		if (c.got == nil) != (c.kinds == nil) {
			t.Errorf("%s: %v", name, c.got)
		}
		for _, kind := range []error{driver.ErrNotApplied, driver.ErrUnknown, driver.ErrTooLarge, driver.ErrClosed,
			context.Canceled, context.DeadlineExceeded, kgo.ErrClientClosed} {
			want := slices.Contains(c.kinds, kind)
			if errors.Is(c.got, kind) != want {
				t.Errorf("%s: %v is %v: %v, want %v", name, c.got, kind, !want, want)
			}
		}
	}
}
