package envelope

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

const vectorFile = "testdata/vectors.json"

// vectors is testdata/vectors.json, which programs in other languages test themselves against. Names are those of
// ferry.proto, bytes are hexadecimal, and times and durations are text because JavaScript would round them.
type vectors struct {
	Version     int                `json:"version"`
	Messages    []messageVector    `json:"messages"`
	DeadLetters []deadLetterVector `json:"dead_letters"`
}

type messageVector struct {
	Name     string      `json:"name"`
	Message  jsonMessage `json:"message"`
	Envelope string      `json:"envelope"`
	Stream   [][2]string `json:"stream"` // name as text, value
	Kafka    [][2]string `json:"kafka"`
}

type deadLetterVector struct {
	Name       string         `json:"name"`
	DeadLetter jsonDeadLetter `json:"dead_letter"`
	Envelope   string         `json:"envelope"`
}

type jsonMessage struct {
	ID          string            `json:"id,omitempty"`
	OwnID       bool              `json:"own_id,omitempty"`
	Topic       string            `json:"topic,omitempty"`
	Key         string            `json:"key,omitempty"`
	Body        string            `json:"body,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Priority    driver.Priority   `json:"priority,omitempty"`
	PublishedAt *int64            `json:"published_at_ns,omitempty,string"`
	Delay       int64             `json:"delay_ns,omitempty,string"`
	At          *int64            `json:"at_ns,omitempty,string"`
	TTL         int64             `json:"ttl_ns,omitempty,string"`
	DedupID     string            `json:"dedup_id,omitempty"`
	DedupWindow int64             `json:"dedup_window_ns,omitempty,string"`
	MaxAttempts int               `json:"max_attempts,omitempty"`
	Retry       *jsonRetry        `json:"retry,omitempty"`
}

type jsonRetry struct {
	Delays     []string `json:"delays_ns,omitempty"`
	Base       int64    `json:"base_ns,omitempty,string"`
	Factor     float64  `json:"factor,omitempty"`
	Cap        int64    `json:"cap_ns,omitempty,string"`
	NoJitter   bool     `json:"no_jitter,omitempty"`
	MaxElapsed int64    `json:"max_elapsed_ns,omitempty,string"`
}

type jsonDeadLetter struct {
	Message     *jsonMessage  `json:"message,omitempty"`
	Reason      string        `json:"reason,omitempty"`
	Error       string        `json:"error,omitempty"`
	Fingerprint string        `json:"fingerprint,omitempty"`
	Stack       string        `json:"stack,omitempty"`
	History     []jsonFailure `json:"history,omitempty"`
	Origin      jsonOrigin    `json:"origin"`
	Attempts    int           `json:"attempts,omitempty"`
	Deliveries  int           `json:"deliveries,omitempty"`
	Recoverable bool          `json:"recoverable,omitempty"`
	Action      string        `json:"action,omitempty"`
	Rounds      int           `json:"rounds,omitempty"`
	DiedAt      *int64        `json:"died_at_ns,omitempty,string"`
}

type jsonOrigin struct {
	Topic     string `json:"topic,omitempty"`
	Group     string `json:"group,omitempty"`
	Partition int32  `json:"partition,omitempty"`
	Pos       uint64 `json:"pos,omitempty,string"`
	Sub       uint64 `json:"sub,omitempty,string"`
	Instance  string `json:"instance,omitempty"`
}

type jsonFailure struct {
	At       *int64 `json:"at_ns,omitempty,string"`
	Instance string `json:"instance,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Duration int64  `json:"duration_ns,omitempty,string"`
	Reason   string `json:"reason,omitempty"`
	Error    string `json:"error,omitempty"`
	Stack    string `json:"stack,omitempty"`
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	var v vectors
	if err := json.Unmarshal(must[[]byte](t)(os.ReadFile(vectorFile)), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v messageVector) envelope(t testing.TB) []byte {
	return must[[]byte](t)(hex.DecodeString(v.Envelope))
}

func (v deadLetterVector) envelope(t testing.TB) []byte {
	return must[[]byte](t)(hex.DecodeString(v.Envelope))
}

func toNS(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ns := t.UnixNano()
	return &ns
}

func fromNS(ns *int64) time.Time {
	if ns == nil {
		return time.Time{}
	}
	return time.Unix(0, *ns)
}

func toJSON(m *driver.Message) jsonMessage {
	j := jsonMessage{ID: m.ID, OwnID: m.OwnID, Topic: m.Topic, Key: m.Key, Body: hex.EncodeToString(m.Body),
		ContentType: m.ContentType, Headers: m.Headers, Priority: m.Priority, PublishedAt: toNS(m.PublishedAt),
		Delay: int64(m.Delay), At: toNS(m.At), TTL: int64(m.TTL), DedupID: m.DedupID, DedupWindow: int64(m.DedupWindow),
		MaxAttempts: m.MaxAttempts}
	if r := m.Retry; r != nil {
		var delays []string
		for _, d := range r.Delays {
			delays = append(delays, strconv.FormatInt(int64(d), 10))
		}
		j.Retry = &jsonRetry{delays, int64(r.Base), r.Factor, int64(r.Cap), r.NoJitter, int64(r.MaxElapsed)}
	}
	return j
}

func (j jsonMessage) message(t testing.TB) *driver.Message {
	m := &driver.Message{ID: j.ID, OwnID: j.OwnID, Topic: j.Topic, Key: j.Key,
		Body:        must[[]byte](t)(hex.DecodeString(j.Body)),
		ContentType: j.ContentType, Headers: j.Headers, Priority: j.Priority, PublishedAt: fromNS(j.PublishedAt),
		Delay: time.Duration(j.Delay), At: fromNS(j.At), TTL: time.Duration(j.TTL), DedupID: j.DedupID,
		DedupWindow: time.Duration(j.DedupWindow), MaxAttempts: j.MaxAttempts}
	if r := j.Retry; r != nil {
		var delays []time.Duration
		for _, d := range r.Delays {
			delays = append(delays, time.Duration(must[int64](t)(strconv.ParseInt(d, 10, 64))))
		}
		m.Retry = &driver.RetryPolicy{Delays: delays, Base: time.Duration(r.Base), Factor: r.Factor,
			Cap: time.Duration(r.Cap), NoJitter: r.NoJitter, MaxElapsed: time.Duration(r.MaxElapsed)}
	}
	return m
}

func deadToJSON(dl *driver.DeadLetter) jsonDeadLetter {
	j := jsonDeadLetter{Reason: string(dl.Reason), Error: dl.Error, Fingerprint: dl.Fingerprint, Stack: dl.Stack,
		Origin: jsonOrigin{dl.Origin.Topic, dl.Origin.Group, dl.Origin.Ref.Partition, dl.Origin.Ref.Pos,
			dl.Origin.Ref.Sub, dl.Origin.Instance},
		Attempts: dl.Attempts, Deliveries: dl.Deliveries, Recoverable: dl.Recoverable, Action: string(dl.Action),
		Rounds: dl.Rounds, DiedAt: toNS(dl.DiedAt)}
	if dl.Message != nil {
		m := toJSON(dl.Message)
		j.Message = &m
	}
	for _, f := range dl.History {
		j.History = append(j.History, jsonFailure{toNS(f.At), f.Instance, f.Attempt, int64(f.Duration),
			string(f.Reason), f.Error, f.Stack})
	}
	return j
}

func (j jsonDeadLetter) deadLetter(t testing.TB) *driver.DeadLetter {
	dl := &driver.DeadLetter{Reason: driver.Reason(j.Reason), Error: j.Error, Fingerprint: j.Fingerprint, Stack: j.Stack,
		Origin: driver.Origin{Topic: j.Origin.Topic, Group: j.Origin.Group, Instance: j.Origin.Instance,
			Ref: driver.Ref{Partition: j.Origin.Partition, Pos: j.Origin.Pos, Sub: j.Origin.Sub}},
		Attempts: j.Attempts, Deliveries: j.Deliveries, Recoverable: j.Recoverable, Action: driver.Action(j.Action),
		Rounds: j.Rounds, DiedAt: fromNS(j.DiedAt)}
	if j.Message != nil {
		dl.Message = j.Message.message(t)
	}
	for _, f := range j.History {
		dl.History = append(dl.History, driver.Failure{At: fromNS(f.At), Instance: f.Instance, Attempt: f.Attempt,
			Duration: time.Duration(f.Duration), Reason: driver.Reason(f.Reason), Error: f.Error, Stack: f.Stack})
	}
	return dl
}
