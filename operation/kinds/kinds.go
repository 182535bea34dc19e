// Package kinds has the operations that Ferry knows: replay, remove, expire and export dead letters and parse errors,
// purge and reschedule messages that wait, reset a group, and audit a topic.
//
//	queue, err := operation.New(broker, kinds.All(broker)...)
//	letters := kinds.Letters{Topic: "orders", Where: `reason == "timeout"`}
//	op, err := queue.Submit(ctx, kinds.Replay{Letters: letters, Rate: 100}.Request())
//
// Each is about what was there when it was submitted. Each message is dealt with in one atomic step of the broker, so
// that whoever goes on after a kill, or even two at once, leave every message in one place.
package kinds

import (
	"context"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/operation"
)

// Names of the kinds.
const (
	LettersReplay      = "letters.replay"
	LettersRemove      = "letters.remove"
	LettersExpire      = "letters.expire"
	LettersExport      = "letters.export"
	MessagesPurge      = "messages.purge"
	MessagesReschedule = "messages.reschedule"
	GroupReset         = "group.reset"
	TopicAudit         = "topic.audit"
)

// Duration is a time.Duration that stands in JSON as a text: "1m30s".
type Duration = jsontime.Duration

// All returns the kinds of this package but for Export, which needs a directory.
func All(b *ferry.Broker) []operation.Kind {
	return []operation.Kind{
		operation.NewKind(LettersReplay,
			operation.Work[Replay]{Check: Replay.check, Run: func(ctx context.Context, t *operation.Task, a Replay) error {
				return a.run(ctx, b, t)
			}}),
		operation.NewKind(LettersRemove,
			operation.Work[Remove]{Check: Remove.check, Run: func(ctx context.Context, t *operation.Task, a Remove) error {
				return a.run(ctx, b, t)
			}}),
		operation.NewKind(LettersExpire,
			operation.Work[Expire]{Check: Expire.check, Run: func(ctx context.Context, t *operation.Task, a Expire) error {
				return a.run(ctx, b, t)
			}}),
		operation.NewKind(MessagesPurge,
			operation.Work[Purge]{Check: Purge.check, Run: func(ctx context.Context, t *operation.Task, a Purge) error {
				return a.run(ctx, b, t)
			}}),
		operation.NewKind(MessagesReschedule,
			operation.Work[Reschedule]{Check: Reschedule.check,
				Run: func(ctx context.Context, t *operation.Task, a Reschedule) error { return a.run(ctx, b, t) }}),
		operation.NewKind(GroupReset, operation.Work[Reset]{Check: Reset.check,
			Run: func(ctx context.Context, t *operation.Task, a Reset) error { return a.run(ctx, b, t) }}),
		operation.NewKind(TopicAudit, operation.Work[Audit]{Check: Audit.check,
			Run: func(ctx context.Context, t *operation.Task, a Audit) error { return a.run(ctx, b, t) }}),
	}
}

// filter compiles a condition; an empty one is none.
func filter(text string) (*deadletter.Filter, error) {
	if text == "" {
		return nil, nil
	}
	return deadletter.ParseFilter(text)
}

// grain is how exactly every broker keeps the time of a message.
const grain = time.Millisecond
