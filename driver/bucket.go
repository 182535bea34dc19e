package driver

import (
	"fmt"
	"slices"
	"strings"
)

// Buckets of named values that are Ferry's own. Each stands for a family: itself, and what follows it after a dot.
const (
	SchedulesBucket = "schedules"
	ResultsBucket   = "results"
	MembersBucket   = "members"
	CommandsBucket  = "commands"
	UniqueBucket    = "unique" // unique.00 to unique.0f
	LeadBucket      = "lead"   // lead.<duty>, in which the leader of that duty keeps its state

	OperationsBucket   = "operations"
	TransactionsBucket = "transactions" // transactions.0 to transactions.f
	NotifyBucket       = "notify"       // notify.00 to notify.3f

	AuthBucket  = "auth"  // auth.users, auth.tokens, auth.sessions, auth.actions
	WeComBucket = "wecom" // cursors, and the access token
	PushBucket  = "push"  // push subscriptions, with what signs them
)

// secretBuckets say who may do what, or hold what opens another system.
var secretBuckets = []string{AuthBucket, WeComBucket, PushBucket}

// SecretBucket reports whether only an administrator may see the values of a bucket.
func SecretBucket(bucket string) bool {
	family, _, _ := strings.Cut(bucket, ".")
	return slices.Contains(secretBuckets, family)
}

var ownBuckets = []string{SchedulesBucket, ResultsBucket, MembersBucket, CommandsBucket, UniqueBucket, LeadBucket,
	OperationsBucket, TransactionsBucket, NotifyBucket,
	AuthBucket, WeComBucket, PushBucket}

// ReservedBucket reports whether a bucket is one of Ferry's own.
func ReservedBucket(bucket string) bool {
	family, _, _ := strings.Cut(bucket, ".")
	return slices.Contains(ownBuckets, family)
}

// CheckBucket says what is wrong with the name of a bucket that a program chooses, or nil. Like CheckTopic it is asked
// above the seam.
func CheckBucket(bucket string) error {
	if err := CheckName("bucket", bucket); err != nil || !ReservedBucket(bucket) {
		return err
	}
	return NewError(ErrInvalid, fmt.Sprintf("bucket %s is one of Ferry's own", quote(bucket)),
		fmt.Sprintf("use another name; %s and what begins with one of them and a dot are taken",
			strings.Join(ownBuckets, ", ")), nil)
}
