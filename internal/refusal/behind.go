package refusal

import (
	"errors"

	"github.com/ferrymq/ferry/driver"
)

// Behind keeps the outcomes of each key in order within one call of Settle: once one of them was not applied, those
// behind it are refused, or they would stand before an outcome that is tried again. The zero value is ready.
type Behind struct{ failed map[string]bool }

// Note takes in how the settlement of a delivery ended. One whose lease was lost is not tried again: those behind it
// are judged by their own leases.
func (b *Behind) Note(d *driver.Delivery, err error) {
	if err == nil || d == nil || d.Message == nil || d.Key == "" || errors.Is(err, driver.ErrLeaseLost) {
		return
	}
	if b.failed == nil {
		b.failed = map[string]bool{}
	}
	b.failed[d.Key] = true
}

// Refuse says why a delivery must not be settled now, or nil. It does not wrap the error of the one ahead, whose kind
// says nothing about this one.
func (b *Behind) Refuse(d *driver.Delivery) error {
	if b.failed == nil || d == nil || d.Message == nil || !b.failed[d.Key] {
		return nil
	}
	return driver.NewError(driver.ErrNotApplied, "an outcome of its key before it in the call was not applied",
		"settle them again, in the same order", nil)
}
