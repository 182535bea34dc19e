package refusal_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// TestBehind: what was not applied holds up its key and no other, with an error that can be tried again whatever the
// reason was.
func TestBehind(t *testing.T) {
	of := func(key string) *driver.Delivery { return &driver.Delivery{Message: &driver.Message{Key: key}} }
	for _, c := range []struct {
		name  string
		err   error
		holds bool
	}{
		{"applied", nil, false},
		{"refused for good", driver.ErrInvalid, true},
		{"not applied", fmt.Errorf("away: %w", driver.ErrNotApplied), true},
		{"unknown", driver.ErrUnknown, true},
		{"lost", driver.ErrLeaseLost, false},
	} {
		var b refusal.Behind
		b.Note(of("k"), c.err)
		b.Note(of(""), driver.ErrUnknown)
		b.Note(nil, driver.ErrInvalid)
		err := b.Refuse(of("k"))
		if got := errors.Is(err, driver.ErrNotApplied); got != c.holds || errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, d := range []*driver.Delivery{of("other"), of(""), nil, {}} {
			if err := b.Refuse(d); err != nil {
				t.Errorf("%s: another is held up: %v", c.name, err)
			}
		}
	}
}
