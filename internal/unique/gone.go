package unique

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/driver"
)

// gone reports whether a message that was stored is settled in every group. Who cannot tell says no. It is how an id
// becomes free whose message ended without a worker: expired, cancelled, purged, removed with its topic, or settled by
// a process that was killed before it could remove the value.
func (k *Keeper) gone(ctx context.Context, topic string, there record) bool {
	target := driver.Target{Topic: topic, ID: there.ID}
	if k.caps.GetByID != driver.LookupIndexed { // then that an id is not found means nothing
		ref, err := driver.ParseRef(there.Ref)
		if there.Ref == "" || err != nil {
			return false
		}
		target.Ref = ref
	}
	entries, err := k.driver.Get(ctx, target)
	if err != nil {
		return errors.Is(err, driver.ErrNotFound)
	}
	for i := range entries {
		e := &entries[i]
		if e.Message == nil || e.ID != there.ID { // another lies in its place
			continue
		}
		if e.State != driver.StateDead && e.State != driver.StateDone {
			return false
		}
	}
	return true
}
