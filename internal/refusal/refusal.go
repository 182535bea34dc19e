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

// Receive is the error of a Receive of a subscription that was closed, or was said not to receive any more; otherwise
// nil.
func Receive(closed, drained bool) error {
	switch {
	case closed:
		return driver.NewError(driver.ErrClosed, "the subscription is closed", "subscribe again", nil)
	case drained:
		return driver.NewError(driver.ErrClosed, "the subscription is drained",
			"settle what is held and close it; subscribe again to receive", nil)
	}
	return nil
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
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return errors.Join(errs...)
}
