package cluster

import "time"

// Times and bounds of the protocol.
const (
	MaxMaxBody = 64 << 20

	// StorePatience is how long records are tried to be stored, and so bounds a settlement, which stands even when its
	// caller gives up.
	StorePatience = 30 * time.Second

	openWait      = 10 * time.Second // how long opening waits for a broker that does not answer
	Rebalance     = 20 * time.Second
	LookEvery     = 15 * time.Second // for partitions that were added
	DrainFor      = 3 * time.Second  // how long a revoked partition waits for its deliveries
	CommitEvery   = 200 * time.Millisecond
	SettleLag     = 5 * CommitEvery // a commit may take its time
	FetchWait     = 100 * time.Millisecond
	WindowItems   = 20_000 // fetched and not settled, for each member
	IDWindow      = 60 * time.Second
	MaxRemembered = 1_000_000
)
