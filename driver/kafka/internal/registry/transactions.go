package registry

import (
	"context"
	"sync"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// AnnounceTransactions tells everybody that owners of partitions may leave transactions open.
func (d *Registry) AnnounceTransactions(ctx context.Context) error {
	if !d.cluster.Settings.Transactions || d.Meta.Get(cluster.TransactionsKey) != nil {
		return nil
	}
	return d.Put(ctx, cluster.TransactionsKey, struct{}{})
}

// EndOpen ends the transactions that earlier owners of partitions left open: their commits are unstable, and hold up the next owner.
func (d *Registry) EndOpen(ctx context.Context, group string, ids []int32) {
	if d.Meta.Get(cluster.TransactionsKey) == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.cluster.Settings.Session)
	defer cancel()
	var ending sync.WaitGroup
	for _, id := range ids {
		ending.Go(func() {
			_ = d.cluster.Fence(ctx, cluster.TransactionalID(group, id)) // then brokers end it, a little later
		})
	}
	ending.Wait()
}
