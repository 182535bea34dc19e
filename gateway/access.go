package gateway

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

// may says that who asks must not do something with a topic, or nil. No topic stands for what belongs to none.
func may(ctx context.Context, s auth.Scope, topic string) error {
	who := auth.From(ctx)
	if who.May(s, topic) {
		return nil
	}
	where := "what belongs to no topic"
	if topic != "" {
		where = fmt.Sprintf("topic %.80q", topic)
	}
	return driver.NewError(driver.ErrRefused, fmt.Sprintf("%s has no scope %q on %s", who, s, where),
		"use a token with this scope, and a grant on the topic", nil)
}

// mayBrowse is for calls that show whole messages.
func (g *Gateway) mayBrowse(ctx context.Context, topic string) error {
	if err := mayRead(ctx, topic); err != nil {
		return err
	}
	if g.o.Masked != nil && g.o.Masked(topic) {
		return may(ctx, auth.Consume, topic)
	}
	return nil
}

// mayRead is for calls that show bodies.
func mayRead(ctx context.Context, topic string) error {
	if err := may(ctx, auth.View, topic); err != nil {
		return err
	}
	return may(ctx, auth.Payload, topic)
}

// mayKV is for named values. They belong to no topic: who may write them may change schedules, results and leaders.
func mayKV(ctx context.Context, bucket string) error {
	if driver.SecretBucket(bucket) {
		return may(ctx, auth.Admin, "")
	}
	return may(ctx, auth.Operate, "")
}
