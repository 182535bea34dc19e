package api

import (
	"encoding/json"

	"github.com/ferrymq/ferry/internal/letterjson"
)

// Message is a message as one group sees it: the form that ferry prints and an export writes.
type Message struct {
	letterjson.Record
	// Hidden says that body and raw bytes are left out, because whoever asks lacks the scope payload.
	Hidden bool `json:"hidden,omitempty" doc:"The body is left out: whoever asks lacks the scope payload"`
	// Masked says that parts of body or headers were replaced, by the rules of the server.
	Masked bool `json:"masked,omitempty" doc:"Parts of body or headers were replaced by the masking rules of the server"`
	// Decoded is a body of another format as JSON. Only a message that is asked for by its id has it.
	Decoded string `json:"decoded,omitempty" doc:"The body as JSON, where the server reads its content type; of one message, not in lists"`
	// Undecoded says why a body of a format that the server reads is not decoded.
	Undecoded string `json:"undecoded,omitempty" doc:"Why a body whose content type the server reads could not be decoded"`
	// Schemaless says that a decoded body has field numbers and wire types where names would be: nobody knows its schema.
	Schemaless bool `json:"schemaless,omitempty" doc:"The format names no fields and its schema is not known: a decoded body has numbers and wire types instead"`
}

// MessagePage is a page of messages. It may be empty although there is more.
type MessagePage struct {
	Messages []Message `json:"messages"`
	Scanned  int       `json:"scanned" doc:"Messages looked at since the first page"`
	Total    int64     `json:"total" doc:"About how many there were then"`
	Faulty   int       `json:"faulty,omitempty" doc:"Messages of this page of which the filter could not be asked"`
	Fault    string    `json:"fault,omitempty" doc:"Why, of the first of them"`
	Next     string    `json:"next,omitempty" doc:"Cursor that continues; absent at the end"`
}

// Views are a message as every group sees it.
type Views struct {
	Messages []Message `json:"messages"`
}

// NewMessage is a message to publish.
type NewMessage struct {
	ID          string            `json:"id,omitempty" maxLength:"128"`
	Key         string            `json:"key,omitempty" maxLength:"256"`
	Body        *string           `json:"body,omitempty" doc:"The body, as text"`
	BodyBase64  []byte            `json:"body_base64,omitempty" doc:"The body, if it is not text"`
	ContentType string            `json:"content_type,omitempty" maxLength:"256"`
	Headers     map[string]string `json:"headers,omitempty"`
	Priority    string            `json:"priority,omitempty" enum:"low,normal,high,urgent"`
	Delay       Duration          `json:"delay,omitempty"`
	At          *Time             `json:"at,omitempty"`
	TTL         Duration          `json:"ttl,omitempty"`
	Dedup       string            `json:"dedup,omitempty" maxLength:"128"`
	DedupWindow Duration          `json:"dedup_window,omitempty"`
	MaxAttempts int               `json:"max_attempts,omitempty" minimum:"0"`
}

// Published tells what became of a message that was published.
type Published struct {
	ID        string `json:"id"`
	Ref       string `json:"ref,omitempty"`
	Topic     string `json:"topic"`
	Duplicate bool   `json:"duplicate,omitempty"`
	Spooled   bool   `json:"spooled,omitempty" doc:"Not in the broker yet, but in a spool beside the server"`
}

// Reschedule says when a message is due.
type Reschedule struct {
	After Duration `json:"after,omitempty" doc:"From now on; zero is at once"`
}

// Edit changes a message on its way out of the dead letters. What is absent stays.
type Edit struct {
	Body        *string           `json:"body,omitempty"`
	BodyBase64  []byte            `json:"body_base64,omitempty"`
	ContentType string            `json:"content_type,omitempty" maxLength:"256"`
	Headers     map[string]string `json:"headers,omitempty" doc:"Set on the message; a header with an empty value is removed"`
	Patch       []PatchStep       `json:"patch,omitempty" doc:"JSON patch (RFC 6902) for the body" maxItems:"1000"`
}

// PatchStep is one operation of a JSON patch.
type PatchStep struct {
	Op    string          `json:"op" enum:"add,remove,replace,move,copy,test"`
	Path  string          `json:"path"`
	From  string          `json:"from,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// ReplayOne says how one dead letter goes back to work.
type ReplayOne struct {
	To      string   `json:"to,omitempty" doc:"Another topic; its own group by default"`
	ToGroup string   `json:"to_group,omitempty" doc:"Another group of the topic"`
	After   Duration `json:"after,omitempty"`
	Edit    *Edit    `json:"edit,omitempty"`
}

// Replayed tells what became of the letters that were replayed or removed.
type Replayed struct {
	Done    int            `json:"done"`
	Skipped int            `json:"skipped"`
	Why     map[string]int `json:"why,omitempty" doc:"What was skipped, by reason"`
}

// Tally is how many letters there are, of which kind.
type Tally struct {
	Matched int      `json:"matched"`
	Buckets []Bucket `json:"buckets"`
	Others  int      `json:"others" doc:"Letters of kinds beyond the largest ones"`
	Faulty  int      `json:"faulty,omitempty"`
	Scanned int      `json:"scanned"`
	Total   int64    `json:"total"`
	Next    string   `json:"next,omitempty" doc:"Continues; add the answers up"`
}

// Bucket counts letters that have something in common; only that is set.
type Bucket struct {
	Count       int    `json:"count"`
	Topic       string `json:"topic,omitempty"`
	Group       string `json:"group,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Key         string `json:"key,omitempty"`
	Day         string `json:"day,omitempty"`
	Bytes       int64  `json:"bytes"`
	FirstDied   *Time  `json:"first_died,omitempty"`
	LastDied    *Time  `json:"last_died,omitempty"`
}

// Imported tells what an import did.
type Imported struct {
	Lines      int `json:"lines"`
	Published  int `json:"published"`
	Present    int `json:"present" doc:"Left out: the broker still has them"`
	Duplicates int `json:"duplicates" doc:"Imported before"`
}

// Result is what is known of a message in one group, and what its handler returned.
type Result struct {
	Topic       string  `json:"topic"`
	Group       string  `json:"group"`
	ID          string  `json:"id"`
	State       string  `json:"state"`
	Attempt     int     `json:"attempt"`
	Error       string  `json:"error,omitempty"`
	Progress    *Step   `json:"progress,omitempty"`
	ContentType string  `json:"content_type,omitempty"`
	Body        *string `json:"body,omitempty"`
	BodyBase64  []byte  `json:"body_base64,omitempty"`
	Hidden      bool    `json:"hidden,omitempty"`
	At          *Time   `json:"at,omitempty"`
}

// Step is how far a handler is.
type Step struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Note  string `json:"note,omitempty"`
}

// TransactionPage is a page of the transactions that are not done.
type TransactionPage struct {
	Transactions []Transaction `json:"transactions"`
	Next         string        `json:"next,omitempty"`
}

// Transaction is a set of messages that are published together or not at all.
type Transaction struct {
	ID      string   `json:"id"`
	State   string   `json:"state"`
	By      string   `json:"by,omitempty"`
	Done    bool     `json:"done"`
	Kind    string   `json:"kind,omitempty"`
	Subject string   `json:"subject,omitempty"`
	Count   int      `json:"count"`
	Written *Time    `json:"written,omitempty"`
	TTL     Duration `json:"ttl,omitempty"`
	Halves  []Half   `json:"halves"`
}

// Half is a message that a transaction holds.
type Half struct {
	Topic string   `json:"topic"`
	ID    string   `json:"id"`
	Delay Duration `json:"delay,omitempty"`
}

// Skipped is what the tail of a topic did not show before the message that follows.
type Skipped struct {
	Count int64 `json:"count" doc:"Messages: settled before they could be looked at, or more than a tail shows"`
	More  bool  `json:"more,omitempty" doc:"There were others beside them, nobody counted how many"`
}

// Any reports whether anything was skipped.
func (s Skipped) Any() bool { return s.Count > 0 || s.More }
