package workload

import (
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A process that is told to end cannot help it if the broker is away, or if the answer to its last call is lost.
func TestAway(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		fmt.Errorf("closing: %w", ferry.ErrNotApplied):                       true,
		errors.Join(errors.New("first"), fmt.Errorf("%w", ferry.ErrUnknown)): true,
		ferry.ErrInvalid:  false,
		errors.New("own"): false,
	} {
		if got := away(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
