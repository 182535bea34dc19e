// Package result keeps what handlers return in the broker, where another process waits for it: request and answer,
// progress of long work, and many parts joined to one. It works on every broker, since all it needs is driver.KV.
//
//	keep, err := result.Keep(broker, result.Options{})
//	worker.Handle(w, "reports", func(ctx context.Context, m *ferry.Msg[Order]) error {
//		return result.Return(ctx, total(m.Value))
//	}, worker.Use(keep))
//
// and anywhere else:
//
//	receipt, err := ferry.Publish(ctx, broker, "reports", order)
//	total, err := result.Wait[int](ctx, broker, "reports", "default", receipt.ID)
//
// # What is promised
//
// A result is stored before its message is acknowledged, so whoever finds the message gone finds the result. It is kept
// for [Options].TTL. Messages are handled at least once, and so are results returned: if the process ends between both,
// the message is handled again and its result replaced by the newer one. It never goes the other way: what a delivery
// writes after a later one has written is refused, by the time of their claims.
package result
