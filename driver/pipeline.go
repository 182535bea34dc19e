package driver

import "context"

// Pipeliner is a Driver that can have several publishes on their way at once and keep their order. It is optional: it
// is worth having where a publish waits for an answer from afar.
type Pipeliner interface {
	// Send is Publish in two steps. It returns when no message of a later Send can come before one of these. The function
	// it returns waits, and returns what Publish would have. It must be called, once. Until it has returned, messages and
	// bodies stay as they are, so that they need not be copied: it waits for the outcome even when ctx ends.
	Send(ctx context.Context, msgs []*Message, o PublishOptions) (wait func() ([]Receipt, error))
}

// SyncSharer is a Driver in this process whose publishes wait for a disk, which is written and synced for all who wait
// at once. It is optional: a second call beside one that is under way would wait for a sync of its own, so that those
// who publish at once had better be gathered into one call at a time.
type SyncSharer interface {
	Driver
	// SharesSync does nothing: a driver that has it is one.
	SharesSync()
}
