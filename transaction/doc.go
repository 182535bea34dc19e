// Package transaction publishes messages to several topics, all or none, whoever is killed meanwhile.
//
//	tx, err := transaction.Begin(broker, transaction.Options{Kind: "orders", Subject: order.ID})
//	_, err = tx.Publish(ctx, bill, parcel) // halves: stored, and seen by nobody
//	err = saveOrder(order)                 // your own work
//	err = tx.Commit(ctx)                   // or tx.Rollback
//
// A half is a message that the broker holds in its topic. The decision is one write of a named value; halves are moved
// or deleted after it, by the producer, or if that is gone by any [Resolver]. A transaction whose producer vanished
// before it decided is checked back: the resolver asks a function of yours whether the work was done. After its TTL it
// is rolled back.
//
// Each half appears on its own, so that for a moment some can be seen and others cannot. docs/transactions.md says what
// is exact.
package transaction
