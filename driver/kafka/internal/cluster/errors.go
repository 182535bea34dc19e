package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// ErrLost is for a delivery that is no longer leased.
func ErrLost(why string) error {
	return driver.NewError(driver.ErrLeaseLost, why, "drop the result: the message is or was with another delivery", nil)
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

// NotApplied says that nothing was changed, whatever became of a part of it. An error that says so already, or why it
// is refused, stays.
func NotApplied(err error, text, hint string) error {
	var known *driver.Error
	if errors.As(err, &known) {
		if !errors.Is(err, driver.ErrUnknown) {
			return err
		}
		err = cmp.Or(known.Cause, err)
	}
	return driver.NewError(driver.ErrNotApplied, text, hint, part{err})
}

// Unknown says that something may or may not have been changed, whatever is known of a part of it.
func Unknown(err error, text, hint string) error {
	return driver.NewError(driver.ErrUnknown, text, hint, part{err})
}

// Joined is the error of several steps: unknown, if that is what one of them is.
func Joined(errs ...error) error {
	err := errors.Join(errs...)
	if errors.Is(err, driver.ErrUnknown) && errors.Is(err, driver.ErrNotApplied) {
		return Unknown(err, "some of it may or may not be stored", "check, or repeat it with the same ids")
	}
	return err
}

// part is why a part of something failed. What it says of the outcome does not hold for the whole: a caller who asks
// for both kinds must not hear yes twice.
type part struct{ error }

// Is implements what errors.Is asks.
func (p part) Is(target error) bool {
	return target != driver.ErrNotApplied && target != driver.ErrUnknown && errors.Is(p.error, target)
}

// Whole is an answer about several topics or partitions, with the error of the first that has one.
func Whole[A interface{ Error() error }](answer A, err error) (A, error) {
	if err == nil {
		err = answer.Error()
	}
	return answer, err
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
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.GroupAuthorizationFailed) ||
		errors.Is(err, kerr.ClusterAuthorizationFailed) || errors.Is(err, kerr.TransactionalIDAuthorizationFailed)
}

// Forbidden is for a request that the ACLs do not allow.
func Forbidden(what string, err error) error {
	return driver.NewError(driver.ErrNotApplied, what+" is not allowed", "give the user the ACLs that docs/kafka.md lists",
		err)
}
