package api

import "encoding/json"

// Operation is long work over many messages.
type Operation struct {
	ID         string           `json:"operation"`
	Kind       string           `json:"kind"`
	Args       json.RawMessage  `json:"args,omitempty"`
	State      string           `json:"state" enum:"waiting,running,done,cancelled,failed"`
	Cancelling bool             `json:"cancelling,omitempty"`
	DryRun     bool             `json:"dry_run,omitempty"`
	By         string           `json:"by,omitempty"`
	Worker     string           `json:"worker,omitempty"`
	Takes      int              `json:"takes"`
	Submitted  *Time            `json:"submitted,omitempty"`
	Started    *Time            `json:"started,omitempty"`
	Ended      *Time            `json:"ended,omitempty"`
	Phase      string           `json:"phase,omitempty"`
	Scanned    int64            `json:"scanned"`
	Total      int64            `json:"total"`
	Done       int64            `json:"done" doc:"To how many messages it was done, or would be"`
	Skipped    int64            `json:"skipped"`
	Why        map[string]int64 `json:"why,omitempty" doc:"What was skipped, by reason"`
	Problem    string           `json:"problem,omitempty"`
}

// OperationPage is a page of operations. It may be empty although there is more.
type OperationPage struct {
	Operations []Operation `json:"operations"`
	Next       string      `json:"next,omitempty"`
}

// Bulk is what every operation over many messages may be told.
type Bulk struct {
	DryRun bool   `json:"dry_run,omitempty" doc:"Only count what would be done"`
	ID     string `json:"id,omitempty" maxLength:"64" doc:"Names the operation, so that it is not submitted twice"`
}

// SelectMessages says which messages of a topic that wait are meant.
type SelectMessages struct {
	Group  string   `json:"group,omitempty" doc:"Of one group; of every group by default"`
	States []string `json:"states,omitempty" doc:"Some of ready, waiting, delayed and held" maxItems:"4"`
	Where  string   `json:"where,omitempty" maxLength:"4096" doc:"A condition in the filter language"`
}

// Purge deletes messages that wait.
type Purge struct {
	Bulk
	SelectMessages
}

// RescheduleMany makes messages that wait due at another time.
type RescheduleMany struct {
	Bulk
	SelectMessages
	At *Time `json:"at,omitempty" doc:"When they are due; at once by default"`
}

// Reset makes a group start again from a position.
type Reset struct {
	Bulk
	To    string `json:"to,omitempty" doc:"begin, end, or the ref of a message"`
	Time  *Time  `json:"time,omitempty" doc:"Instead of to: the first message that became ready then or later"`
	Force bool   `json:"force,omitempty" doc:"Also while the group has consumers"`
}

// SelectLetters says which dead letters are meant. Without a topic it takes a grant on every topic.
type SelectLetters struct {
	Topic string `json:"topic,omitempty"`
	Group string `json:"group,omitempty"`
	State string `json:"state,omitempty" enum:"dead,invalid" doc:"Dead letters, or what could not be decoded"`
	Where string `json:"where,omitempty" maxLength:"4096" doc:"A condition in the filter language"`
}

// ReplayMany brings dead letters back to work.
type ReplayMany struct {
	Bulk
	SelectLetters
	To        string            `json:"to,omitempty" doc:"Another topic"`
	ToGroup   string            `json:"to_group,omitempty" doc:"Another group of their topic"`
	After     Duration          `json:"after,omitempty"`
	Rate      float64           `json:"rate,omitempty" minimum:"0" doc:"The most in a second"`
	MaxRounds int               `json:"max_rounds,omitempty" minimum:"0"`
	Patch     []PatchStep       `json:"patch,omitempty" maxItems:"1000" doc:"JSON patch (RFC 6902) for each body"`
	Headers   map[string]string `json:"headers,omitempty"`
	KeepBody  bool              `json:"keep_body,omitempty" doc:"Replay what could not be decoded with the bytes that were found"`
}

// RemoveMany deletes dead letters for good.
type RemoveMany struct {
	Bulk
	SelectLetters
	Rate float64 `json:"rate,omitempty" minimum:"0"`
}

// ExpireMany deletes the oldest dead letters of each topic and group beyond limits.
type ExpireMany struct {
	Bulk
	SelectLetters
	MaxAge   Duration `json:"max_age,omitempty"`
	MaxCount int64    `json:"max_count,omitempty" minimum:"0"`
	MaxBytes int64    `json:"max_bytes,omitempty" minimum:"0"`
}

// AuditTopic looks at every message of a topic, and with fix repairs what it finds.
type AuditTopic struct {
	Bulk
	Fix bool `json:"fix,omitempty"`
}

// ReplayLog makes what a topic keeps ready again for a group that had settled it.
type ReplayLog struct {
	From   string `json:"from,omitempty" doc:"Ref of the first message; the begin by default"`
	To     string `json:"to,omitempty" doc:"Ref before which it ends; the end by default"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// ReplayedLog tells what a replay of a log did, or would do.
type ReplayedLog struct {
	Replayed int `json:"replayed"`
	Skipped  int `json:"skipped"`
}
