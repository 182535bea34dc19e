package alert

import (
	"context"

	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// recoverySeen is a value that says that somebody once recovered dead letters: from then on nobody does is worth a
// word.
const recoverySeen = "recovery"

// recoveryLeaders are how many processes recover dead letters, 0 or 1. It is not known where nobody ever did.
func (r *round) recoveryLeaders(ctx context.Context) (n float64, known bool, err error) {
	led, err := cluster.Led(ctx, r.broker, deadletter.Duty)
	if err != nil {
		return 0, false, err
	}
	seen, err := r.store.kv.Get(ctx, bucket, recoverySeen)
	if err != nil || seen[0].Revision != 0 {
		return count(led), err == nil, err
	}
	if led {
		w := driver.Write{Name: recoverySeen, Fence: r.store.fence}
		err = r.store.kv.Apply(ctx, bucket, driver.KVOptions{}, w)[0].Err
	}
	return count(led), led && err == nil, err
}

func count(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
