package transaction

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// State is how far a transaction is.
type State string

// States of a transaction. The last two are decisions, and stand once they are made.
const (
	Open       State = "open"
	Committed  State = "committed"
	RolledBack State = "rolled_back"
)

// Who decides.
const (
	ByProducer = "producer"
	ByCheck    = "check"    // a Check of a Resolver
	ByTimeout  = "timeout"  // a Resolver, after the TTL
	ByOperator = "operator" // Commit or Rollback by id
)

// Transaction is what is known of one.
type Transaction struct {
	ID      string
	Kind    string // whose Check is asked
	Subject string // what the Check is told
	State   State
	By      string // who decided
	// Done says that all halves are moved or deleted. Halves are then not known any more; Count is how many there were.
	Done   bool
	Halves []Half
	Count  int
	// Written is the broker's time of the last half, or of the decision.
	Written time.Time
	// TTL counts from the last half.
	TTL time.Duration

	revision uint64
}

// Half is a message that a transaction holds.
type Half struct {
	Topic string
	ID    string
	// Delay is from the commit on.
	Delay time.Duration
}

// Bounds of a transaction.
const (
	MaxHalves  = 256
	MaxSubject = 1 << 10 // bytes

	minTTL     = time.Second
	maxTTL     = 7 * 24 * time.Hour
	defaultTTL = time.Hour
)

const (
	openPrefix  = "open/"  // and the id: what is not done
	donePrefix  = "done/"  // what is, for keepFor
	claimPrefix = "claim/" // who looks after it just now

	buckets = 16 // so that what is done in ten minutes has room

	// keepFor is how long a decision is known after it is done: who decides otherwise is told so.
	keepFor = 10 * time.Minute
)

// bucketOf returns the bucket of a transaction.
func bucketOf(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return bucket(int(h.Sum32() % buckets))
}

func bucket(i int) string { return fmt.Sprintf("%s.%x", driver.TransactionsBucket, i) }

// record is the stored form of a transaction. Ids of halves derive from its id and their place.
type record struct {
	State   State         `json:"state"`
	Kind    string        `json:"kind,omitempty"`
	Subject string        `json:"subject,omitempty"`
	TTL     time.Duration `json:"ttl"`
	By      string        `json:"by,omitempty"`
	Halves  []halfRecord  `json:"halves,omitempty"`
	Count   int           `json:"count,omitempty"` // of one that is done
}

type halfRecord struct {
	Topic string        `json:"topic"`
	Delay time.Duration `json:"delay,omitempty"`
}

// halfID is the id of a half: the same whoever moves it, and no other message's.
func halfID(id string, place int) string { return driver.EmitID("transaction/"+id, place) }

// encode returns the stored form of a transaction.
func (t *Transaction) encode() []byte {
	r := record{State: t.State, Kind: t.Kind, Subject: t.Subject, TTL: t.TTL, By: t.By}
	if t.Done {
		r.Count = t.Count
	} else {
		for _, h := range t.Halves {
			r.Halves = append(r.Halves, halfRecord{h.Topic, h.Delay})
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	return data
}

// decode reads a transaction.
func decode(id string, v driver.Value, done bool) (*Transaction, error) {
	var r record
	if err := json.Unmarshal(v.Data, &r); err != nil || r.State != Open && r.State != Committed && r.State != RolledBack {
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("transaction %s cannot be read", id),
			"was it written by a newer version?", err)
	}
	t := &Transaction{ID: id, Kind: r.Kind, Subject: r.Subject, State: r.State, By: r.By, Done: done, Count: r.Count,
		Written: v.Written, TTL: r.TTL, revision: v.Revision}
	for i, h := range r.Halves {
		t.Halves = append(t.Halves, Half{Topic: h.Topic, ID: halfID(id, i), Delay: h.Delay})
	}
	if !done {
		t.Count = len(t.Halves)
	}
	return t, nil
}
