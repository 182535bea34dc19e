// Package refusal has what every driver says in the same words: why a call was not carried out, and what to do next.
package refusal

import (
	"errors"
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// Closed is the error of every call of a driver that was closed.
func Closed() error {
	return driver.NewError(driver.ErrClosed, "the driver is closed", "open it again", nil)
}

// NotStarted is the error of a call whose context had ended before.
func NotStarted(cause error) error {
	return driver.NewError(driver.ErrNotApplied, "the context ended before the call began", "try again", cause)
}

// NoGroup says that a topic has no such group, and which ones it has.
func NoGroup(topic, name string, existing []string) error {
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q has no group %q", topic, name),
		"existing groups: "+driver.Listed(existing), nil)
}

// All gives every receipt one error, and returns it.
func All(rs []driver.Receipt, err error) error {
	for i := range rs {
		rs[i].Err = err
	}
	return err
}

// Of returns the errors of receipts as one. A batch is mostly refused for one reason: what follows its like is not
// repeated.
func Of(rs []driver.Receipt) error {
	var errs []error
	for i := range rs {
		err := rs[i].Err
		if err != nil && (len(errs) == 0 || errs[len(errs)-1].Error() != err.Error()) {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
