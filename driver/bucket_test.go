package driver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

func TestReservedBuckets(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"schedules", "schedules.progress", "results.00", "members", "commands", "lead",
		"lead.reports", "operations"} {
		err := driver.CheckBucket(name)
		if !driver.ReservedBucket(name) || !errors.Is(err, driver.ErrInvalid) ||
			!strings.Contains(err.Error(), "Ferry's own") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"locks", "schedule", "members2", "my.members", "leader.reports"} {
		if err := driver.CheckBucket(name); err != nil || driver.ReservedBucket(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := driver.CheckBucket("no spaces"); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a name that no bucket has: %v", err)
	}
}
