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
