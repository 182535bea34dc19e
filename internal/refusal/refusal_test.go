package refusal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The error of a batch names every reason, and one that many messages share only once: an error is read by people.
func TestOf(t *testing.T) {
	full, large := fmt.Errorf("full: %w", driver.ErrFull), fmt.Errorf("large: %w", driver.ErrInvalid)
	for _, c := range []struct {
		name string
		errs []error
		want string
	}{
		{"nothing", nil, ""},
		{"all stored", []error{nil, nil}, ""},
		{"one", []error{nil, full, nil}, full.Error()},
		{"one for all", []error{full, full, nil, full}, full.Error()},
		{"two", []error{full, large, large}, full.Error() + "\n" + large.Error()},
	} {
		rs := make([]driver.Receipt, len(c.errs))
		for i, err := range c.errs {
			rs[i].Err = err
		}
		got := ""
		if err := refusal.Of(rs); err != nil {
			got = err.Error()
			if !errors.Is(err, driver.ErrFull) {
				t.Errorf("%s: the kind is lost: %v", c.name, err)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func hint(err error) string {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// A topic of ten thousand groups does not end up in a message.
func TestNamesAreBounded(t *testing.T) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("group-%d", i)
	}
	text := hint(refusal.NoGroup("orders", "billing", names))
	if !strings.Contains(text, "group-9 and 9990 more") || len(text) > 200 {
		t.Errorf("%.300q", text)
	}
	if text = hint(refusal.NoGroup("orders", "billing", nil)); !strings.Contains(text, "none") {
		t.Errorf("%q", text)
	}
}
