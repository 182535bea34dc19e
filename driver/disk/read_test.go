package disk

import (
	"strings"
	"testing"
)

// TestPanicOfPebbleIsAnError: what a damaged file makes Pebble panic of is told; a panic of whoever uses what was read
// is not hidden.
func TestPanicOfPebbleIsAnError(t *testing.T) {
	t.Parallel()
	read := func(ours bool) error {
		return (&store{}).look(&ours, func() error { panic("slice bounds out of range") })
	}
	if err := read(false); err == nil || !strings.Contains(err.Error(), "damaged file: slice bounds") {
		t.Errorf("%v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("our own panic was hidden")
		}
	}()
	_ = read(true)
}
