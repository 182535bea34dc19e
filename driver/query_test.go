package driver_test

import (
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestQueryDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ q, want driver.Query }{
		{driver.Query{Topic: "a", Group: "g", State: driver.StateDead},
			driver.Query{Topic: "a", Group: "g", State: driver.StateDead, Limit: 100, MaxScan: 10_000}},
		{driver.Query{Topic: "a", Group: "g", State: driver.StateHeld, Limit: 5, MaxScan: 6},
			driver.Query{Topic: "a", State: driver.StateHeld, Limit: 5, MaxScan: 6}},
		{driver.Query{Topic: "a", Group: "g", State: driver.StateReady, Limit: 5000, MaxScan: 1 << 40},
			driver.Query{Topic: "a", Group: "g", State: driver.StateReady, Limit: driver.MaxLimit, MaxScan: driver.MaxMaxScan}},
	} {
		got, err := c.q.Resolve(caps)
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%v\n%s", err, d)
		}
	}
}

// A cursor gives back what a driver said, for the same query of the same driver and for no other.
func TestCursorBelongsToItsListing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.StringN(1, 100, 400).Draw(t, "at")
		q := driver.Query{Topic: "orders", Group: "g", State: driver.StateDead}
		q.Cursor = q.Continue(caps, at)
		if got, err := q.Resolve(caps); err != nil || got.Cursor != at {
			t.Fatalf("%q came back as %q, %v", at, got.Cursor, err)
		}
		for _, other := range []driver.Query{
			{Topic: "orders2", Group: "g", State: driver.StateDead}, {Topic: "orders", Group: "h", State: driver.StateDead},
			{Topic: "orders", Group: "g", State: driver.StateReady}, {Topic: "orders", State: driver.StateHeld},
		} {
			other.Cursor = q.Cursor
			if _, err := other.Resolve(caps); err == nil {
				t.Fatalf("%+v takes it", other)
			}
		}
		elsewhere := caps
		elsewhere.Driver = "another"
		if _, err := q.Resolve(elsewhere); err == nil {
			t.Fatal("another driver takes it")
		}
	})
	if got := (driver.Query{}).Continue(caps, ""); got != "" {
		t.Errorf("the end has the cursor %q", got)
	}
	p := driver.PendingQuery{Topic: "orders", Group: "g", Instance: "i"}
	p.Cursor = p.Continue(caps, "0:1-1")
	if got, err := p.Resolve(caps); err != nil || got.Cursor != "0:1-1" || got.Limit != 100 {
		t.Errorf("%+v, %v", got, err)
	}
	p.Instance = "j"
	_, err := p.Resolve(caps)
	wantError(t, "another instance", err, driver.ErrInvalid, "not one of this listing")
	_, err = driver.Query{Topic: "a", State: driver.StateHeld, Cursor: strings.Repeat("0", 1<<20)}.Resolve(caps)
	wantError(t, "a huge cursor", err, driver.ErrInvalid, "not one of this listing")
}

// Whatever is in an error, it stays short enough for a log.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("摆", 1<<20)
	err := driver.NewError(driver.ErrInvalid, long, long, driver.NewError(driver.ErrNotApplied, long, long, nil))
	if n := len(err.Error()); n > 10<<10 {
		t.Errorf("it has %d bytes", n)
	}
	if strings.ToValidUTF8(err.Error(), "") != err.Error() || !strings.Contains(err.Text, "…") {
		t.Error("it is cut within a character, or does not show that it is cut")
	}
}
