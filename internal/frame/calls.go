package frame

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Names of calls. Each is a path below that of the gateway's driver.
const (
	CallHello = "hello"

	CallPublish   = "publish"
	CallSubscribe = "subscribe"
	CallReceive   = "receive"
	CallStop      = "stop" // ends the wait of a receive
	CallBegin     = "begin"
	CallSettle    = "settle"
	CallExtend    = "extend"
	CallDrain     = "drain"
	CallClose     = "close"
	CallRevoked   = "revoked" // waits for deliveries that are going away

	CallTopics   = "topics"
	CallStats    = "stats"
	CallBrowse   = "browse"
	CallGet      = "get"
	CallUsage    = "usage"
	CallDiagnose = "diagnose"
	CallAudit    = "audit"

	CallEnsureTopic = "ensure-topic"
	CallAlterTopic  = "alter-topic"
	CallDeleteTopic = "delete-topic"
	CallEnsureGroup = "ensure-group"
	CallDeleteGroup = "delete-group"
	CallPause       = "pause"
	CallPurge       = "purge"
	CallDelete      = "delete"
	CallMove        = "move"
	CallReset       = "reset"

	CallKVGet     = "kv-get"
	CallKVList    = "kv-list"
	CallKVApply   = "kv-apply"
	CallKVWait    = "kv-wait"
	CallKVChanges = "kv-changes"

	CallPartitions = "log-partitions"
	CallPending    = "log-pending"
	CallReplay     = "log-replay"
	CallRange      = "log-range"
	CallRetain     = "log-retain"
	CallRetention  = "log-retention"
	CallTrim       = "log-trim"
)

// Answer is what a call returned: an error, or a value.
type Answer struct {
	Err   error
	Value Value
}

// Walk writes or reads the error, and the value if there is none.
func (a *Answer) Walk(w *Walk) {
	failure(w, &a.Err)
	if a.Err == nil && a.Value != nil {
		a.Value.Walk(w)
	}
}

// Nothing is a call without arguments, or an answer without a value.
type Nothing struct{}

// Walk does nothing.
func (*Nothing) Walk(*Walk) {}

// Welcome is the answer to CallHello.
type Welcome struct {
	Capabilities driver.Capabilities
	Log          bool // the backend has a driver.Log
	MaxFrame     int  // bytes of a call at most
}

// Walk writes or reads it.
func (x *Welcome) Walk(w *Walk) {
	capabilities(w, &x.Capabilities)
	w.flag(&x.Log)
	number(w, &x.MaxFrame)
}

// Publish is CallPublish.
type Publish struct {
	Messages []*driver.Message
	Options  driver.PublishOptions
}

// Walk writes or reads it.
func (x *Publish) Walk(w *Walk) {
	list(w, &x.Messages, message)
	count(w, &x.Options.Level)
	w.flag(&x.Options.Atomic)
}

// Receipts are the answer to CallPublish.
type Receipts []driver.Receipt

// Walk writes or reads them.
func (x *Receipts) Walk(w *Walk) { list(w, (*[]driver.Receipt)(x), receipt) }

// Errors are the answers to calls with one outcome for each of several things.
type Errors []error

// Walk writes or reads them.
func (x *Errors) Walk(w *Walk) { list(w, (*[]error)(x), failure) }

// Subscribe is CallSubscribe.
type Subscribe struct{ Options driver.SubscribeOptions }

// Walk writes or reads it.
func (x *Subscribe) Walk(w *Walk) { subscribeOptions(w, &x.Options) }

// Session names a subscription that a gateway holds for a client. It is the answer to CallSubscribe, and asks for
// CallDrain, CallClose and CallRevoked.
type Session struct{ ID string }

// Walk writes or reads it.
func (x *Session) Walk(w *Walk) { text(w, &x.ID) }

// Receive is CallReceive, and without Max CallStop. Each receive of a session has the next number. Got is the number of
// the last one whose answer arrived: what an answer after it brought is brought again, so that a lost answer loses no
// claim.
type Receive struct {
	Session     string
	Number, Got uint64
	Max         int
}

// Walk writes or reads it.
func (x *Receive) Walk(w *Walk) {
	text(w, &x.Session)
	w.uint(&x.Number)
	w.uint(&x.Got)
	number(w, &x.Max)
}

// Deliveries are the answer to CallReceive; none if the gateway has waited long enough. Served is how long the call
// took there: with it a client reckons from before it sent the call how long a lease lasts.
type Deliveries struct {
	Served     time.Duration
	Deliveries []Delivery
}

// Walk writes or reads them.
func (x *Deliveries) Walk(w *Walk) {
	number(w, &x.Served)
	list(w, &x.Deliveries, delivery)
}

// Delivery is a driver.Delivery on its way. Handle names it in its session and stands for its token, and Left is how
// much of its lease is left.
type Delivery struct {
	*driver.Delivery
	Handle uint64
	Left   time.Duration
}

func delivery(w *Walk, d *Delivery) {
	w.delivered(&d.Delivery)
	w.uint(&d.Handle)
	number(w, &d.Left)
	message(w, &d.Message)
	w.repeated(&d.Group)
	ref(w, &d.Ref)
	number(w, &d.Attempt)
	number(w, &d.Deliveries)
	count(w, &d.Cause)
	w.moment(&d.ClaimedAt)
}

// Held is CallBegin and CallExtend.
type Held struct {
	Session string
	Handles []uint64
}

// Walk writes or reads it.
func (x *Held) Walk(w *Walk) {
	text(w, &x.Session)
	list(w, &x.Handles, (*Walk).uint)
}

// Settle is CallSettle. A handle stands for the Delivery of each settlement.
type Settle struct {
	Session     string
	Handles     []uint64
	Settlements []driver.Settlement
}

// Walk writes or reads it.
func (x *Settle) Walk(w *Walk) {
	text(w, &x.Session)
	if w.mode == reading {
		x.Settlements = nil
	}
	i := 0
	list(w, &x.Handles, func(w *Walk, handle *uint64) {
		if w.mode == reading {
			x.Settlements = append(slices.Grow(x.Settlements, min(w.left, firstRoom)), driver.Settlement{})
		}
		w.uint(handle)
		settlement(w, &x.Settlements[i])
		i++
	})
}

func settlement(w *Walk, s *driver.Settlement) {
	count(w, &s.Outcome)
	number(w, &s.After)
	w.flag(&s.Unseen)
	number(w, &s.Took)
	optional(w, &s.Failure, attempt)
	list(w, &s.Emit, message)
}

// Revoked is the answer to CallRevoked: deliveries that go away Within some time; none if the gateway has waited long
// enough.
type Revoked struct {
	Within  time.Duration
	Handles []uint64
}

// Walk writes or reads it.
func (x *Revoked) Walk(w *Walk) {
	number(w, &x.Within)
	list(w, &x.Handles, (*Walk).uint)
}
