package cluster_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// A lock keeps two imports from running at once, and its fence keeps a late one from writing.
func Example() {
	ctx := context.Background()
	broker, err := memory.Open(ctx, memory.Options{})
	if err != nil {
		panic(err)
	}
	defer broker.Close(ctx)

	lock, err := cluster.Acquire(ctx, broker, "lease", cluster.LockOptions{Bucket: "import"})
	if err != nil {
		panic(err)
	}
	_, err = cluster.TryAcquire(ctx, broker, "lease", cluster.LockOptions{Bucket: "import"})
	fmt.Println("another import has to wait:", errors.Is(err, ferry.ErrConflict))

	save := func() error {
		w := driver.Write{Name: "cursor", Data: []byte("42"), Fence: lock.Fence()}
		return broker.Driver().KV().Apply(ctx, "import", driver.KVOptions{}, w)[0].Err
	}
	fmt.Println("saved under the lock:", save())
	if err := lock.Release(ctx); err != nil {
		panic(err)
	}
	fmt.Println("refused after it:", errors.Is(save(), ferry.ErrLeaseLost))
	// Output:
	// another import has to wait: true
	// saved under the lock: <nil>
	// refused after it: true
}
