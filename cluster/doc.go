// Package cluster is how the processes of a program know of each other through their broker: locks with fencing, one
// leader for each duty, a register of members, and commands to them. It works on every broker, since all it needs is
// driver.KV.
//
//	lock, err := cluster.Acquire(ctx, broker, "import", cluster.LockOptions{})
//	if err != nil {
//		return err
//	}
//	defer lock.Release(context.WithoutCancel(ctx))
//	return importAll(lock.Context())
//
// # Fencing
//
// A process that is paused does not know that its lock has ended. So no lock that expires is safe by itself:
// [Lock.Context] ends before another can have the lock, which stops what looks at its context, and [Lock.Epoch] stops
// the rest. It is the number of this holding, never used again and larger than those before: a write that carries it is
// refused once another holds the lock. For values of the same bucket the broker does that itself (Lock.Fence in
// driver.Write); other stores compare the epoch in a condition of their own.
package cluster
