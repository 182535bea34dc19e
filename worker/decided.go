package worker

import (
	"errors"

	"github.com/ferrymq/ferry"
)

// Decided tells which outcome an error asks for, if it was made by RetryAfter, Transient, Fatal, Dead, Drop or Park, so
// that middleware can tell a message that was put off from a handler that failed.
func Decided(err error) (o ferry.Outcome, ok bool) {
	var d *decision
	if errors.As(err, &d) {
		return d.outcome, true
	}
	return 0, false
}
