package deadletter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
)

// Duty is the duty of package cluster that whoever runs the recovery leads.
const Duty = "recovery"

// versionName is the value, beside the lease, that tells the newest version of the program and when it was first seen.
const versionName = "version"

// lead waits until this instance leads the recovery, and runs work while it does. Work gets a context that ends when
// the lead is lost, before another can have it.
func (r *Recoverer) lead(ctx context.Context, work func(ctx context.Context) error) error {
	return cluster.Lead(ctx, r.queue.broker, Duty, func(ctx context.Context, _ *cluster.Lock) error {
		r.leading(true)
		defer r.leading(false)
		return work(ctx)
	})
}

// noteTries is how often a version is noted that others note, too.
const noteTries = 5

// deployedAt returns since when the present version is the newest that was seen, by the backend's clock. It notes the
// version if it is new.
func (q *Queue) deployedAt(ctx context.Context, version string) (time.Time, error) {
	kv, bucket := q.driver.KV(), cluster.LeadBucket(Duty)
	for range noteTries {
		vs, err := kv.Get(ctx, bucket, versionName)
		if err != nil {
			return time.Time{}, err
		}
		w := driver.Write{Name: versionName, Data: []byte(version), If: driver.Absent, Request: rand.Text()}
		if seen := vs[0]; seen.Revision != 0 {
			if string(seen.Data) == version {
				return seen.Written, nil
			}
			w.If = driver.Condition(seen.Revision)
		}
		r := kv.Apply(ctx, bucket, driver.KVOptions{}, w)[0]
		switch {
		case r.Err == nil:
			return r.Written, nil
		case !errors.Is(r.Err, driver.ErrConflict) && !errors.Is(r.Err, driver.ErrUnknown):
			return time.Time{}, r.Err
		}
	}
	return time.Time{}, fmt.Errorf("version %q could not be noted: other versions run the recovery too", version)
}
