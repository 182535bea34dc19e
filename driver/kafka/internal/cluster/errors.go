package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// ErrLost is for a delivery that is no longer held.
func ErrLost(why string) error {
	return driver.NewError(driver.ErrLeaseLost, why, "drop the result: the message is or was with another delivery", nil)
}

// ErrNoTopic is for a topic that does not exist.
func ErrNoTopic(topic string) error {
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q does not exist", topic),
		"publish to it, or create it", nil)
}

// ErrNoGroup is for a group that does not exist.
func ErrNoGroup(topic, group string) error {
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("group %q of topic %q does not exist", group, topic),
		"subscribe to it, or create it", nil)
}

// ErrNoMessage is for a message that is not found.
func ErrNoMessage(t driver.Target) error {
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("no message %q (%s) in topic %q", t.ID, t.Ref, t.Topic),
		fmt.Sprintf("it may be settled already; behind the first %d unsettled of a partition only its Ref finds it",
			WindowItems), nil)
}

// Unsure says what is known about a request that failed.
func Unsure(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return driver.NewError(driver.ErrTooLarge, what+" is larger than the topic allows",
			"raise max.message.bytes of the topic, or publish a reference", err)
	case IsForbidden(err):
		return Forbidden(what, err)
	case errors.Is(err, kgo.ErrClientClosed):
		return driver.NewError(driver.ErrClosed, what+" may or may not be stored: the driver was closed meanwhile",
			"open it again", errors.Join(driver.ErrUnknown, err))
	case errors.Is(err, kerr.NotEnoughReplicas), errors.Is(err, kerr.UnknownTopicOrPartition):
		return driver.NewError(driver.ErrNotApplied, what+" was refused", "see to the cluster, then try again", err)
	}
	return driver.NewError(driver.ErrUnknown, what+" may or may not be stored", "check, or repeat it with the same id",
		err)
}

// IsKafka reports whether an error is one of the brokers'.
func IsKafka(err error, kind *kerr.Error) bool { return errors.Is(err, kind) }

// Unreached is a failed request that changed nothing.
func (d *Cluster) Unreached(what string, err error) error {
	if err != nil && d.IsClosed() {
		return refusal.Closed()
	}
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if IsForbidden(err) {
		return Forbidden(what, err)
	}
	return driver.NewError(driver.ErrNotApplied, what+" failed", "see whether the brokers can be reached", err)
}

// IsForbidden reports whether an ACL is missing: it does not help to try again.
func IsForbidden(err error) bool {
	for _, kind := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed,
		kerr.ClusterAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Forbidden is for a request that the ACLs do not allow.
func Forbidden(what string, err error) error {
	return driver.NewError(driver.ErrNotApplied, what+" is not allowed", "give the user the ACLs that docs/kafka.md lists",
		err)
}
