package envelope

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// same fails unless got and want hold the same values; nil and empty are the same, and so are equal times.
func same(t interface {
	Helper()
	Fatalf(string, ...any)
}, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); d != "" {
		t.Fatalf("differs (-want +got):\n%s", d)
	}
}

// The generators are shared, and rapid writes the name of one when it is first asked for: tests that draw from them do
// not run in parallel.
var (
	genTime = rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "zero") {
			return time.Time{}
		}
		return time.Unix(0, rapid.Int64().Draw(t, "ns"))
	})
	genWait = rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Just(driver.Hold),
		rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }))
	genText = rapid.String()
	genAny  = rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
	genID   = rapid.OneOf(genText, rapid.StringMatching(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`),
		rapid.StringMatching(`[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}`))
	genHeaderName = rapid.OneOf(genText, rapid.SampledFrom([]string{"traceparent", "ferry", "ferry-delay",
		"ferry-header-x", "h:a", "key", "body", "v", "crc"}))
	genRetry = rapid.Custom(func(t *rapid.T) *driver.RetryPolicy {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return &driver.RetryPolicy{
			Delays:     rapid.SliceOf(genWait).Draw(t, "delays"),
			Base:       genWait.Draw(t, "base"),
			Factor:     rapid.Float64().Draw(t, "factor"),
			Cap:        genWait.Draw(t, "cap"),
			NoJitter:   rapid.Bool().Draw(t, "no jitter"),
			MaxElapsed: genWait.Draw(t, "max elapsed"),
		}
	})
	genMessage = rapid.Custom(func(t *rapid.T) *driver.Message {
		return &driver.Message{
			ID:          genID.Draw(t, "id"),
			OwnID:       rapid.Bool().Draw(t, "own id"),
			Topic:       genText.Draw(t, "topic"),
			Key:         genText.Draw(t, "key"),
			Body:        rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
			ContentType: rapid.OneOf(genText, rapid.SampledFrom(contentTypes[1:])).Draw(t, "content type"),
			Headers:     rapid.MapOf(genHeaderName, genAny).Draw(t, "headers"),
			Priority:    driver.Priority(rapid.IntRange(-1, 2).Draw(t, "priority")),
			Delay:       genWait.Draw(t, "delay"),
			At:          genTime.Draw(t, "at"),
			TTL:         genWait.Draw(t, "ttl"),
			DedupID:     genText.Draw(t, "dedup id"),
			DedupWindow: genWait.Draw(t, "dedup window"),
			MaxAttempts: rapid.Int().Draw(t, "max attempts"),
			Retry:       genRetry.Draw(t, "retry"),
			PublishedAt: genTime.Draw(t, "published at"),
		}
	})
	genFailure = rapid.Custom(func(t *rapid.T) driver.Failure {
		return driver.Failure{
			At:       genTime.Draw(t, "at"),
			Instance: genText.Draw(t, "instance"),
			Attempt:  rapid.Int().Draw(t, "attempt"),
			Duration: genWait.Draw(t, "duration"),
			Reason:   driver.Reason(genAny.Draw(t, "reason")),
			Error:    genAny.Draw(t, "error"),
			Stack:    genAny.Draw(t, "stack"),
		}
	})
	genDeadLetter = rapid.Custom(func(t *rapid.T) *driver.DeadLetter {
		return &driver.DeadLetter{
			Message:     rapid.OneOf(rapid.Just[*driver.Message](nil), genMessage).Draw(t, "message"),
			Reason:      driver.Reason(genAny.Draw(t, "reason")),
			Error:       genAny.Draw(t, "error"),
			Fingerprint: genAny.Draw(t, "fingerprint"),
			Stack:       genAny.Draw(t, "stack"),
			History:     rapid.SliceOfN(genFailure, 0, driver.HistoryLimit).Draw(t, "history"),
			Origin: driver.Origin{
				Topic:    genText.Draw(t, "origin topic"),
				Group:    genText.Draw(t, "origin group"),
				Instance: genText.Draw(t, "origin instance"),
				Ref: driver.Ref{
					Partition: rapid.Int32().Draw(t, "partition"),
					Pos:       rapid.Uint64().Draw(t, "pos"),
					Sub:       rapid.Uint64().Draw(t, "sub"),
				},
			},
			Attempts:    rapid.Int().Draw(t, "attempts"),
			Deliveries:  rapid.Int().Draw(t, "deliveries"),
			Recoverable: rapid.Bool().Draw(t, "recoverable"),
			Action:      driver.Action(genAny.Draw(t, "action")),
			Rounds:      rapid.Int().Draw(t, "rounds"),
			DiedAt:      genTime.Draw(t, "died at"),
		}
	})
)

const plainID = "01890a5d-ac96-774b-bcce-b302099a8057" // a UUIDv7

// plain is the usual message: an id, a topic, JSON, a time.
func plain() *driver.Message {
	return &driver.Message{
		ID:          plainID,
		Topic:       "orders",
		Body:        []byte(`{"order":42,"total":"19.90"}`),
		ContentType: "application/json",
		PublishedAt: time.Date(2026, 3, 4, 5, 6, 7, 890_123_456, time.UTC),
	}
}

// full has every field set.
func full() *driver.Message {
	m := plain()
	m.ID, m.OwnID = "order-42", true
	m.Key = "customer-7"
	m.ContentType = "application/vnd.acme.order+json"
	m.Headers = map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"ferry-id": "mine", "empty": ""}
	m.Priority = driver.Urgent
	m.At = time.Date(2026, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	m.TTL = 365 * 24 * time.Hour
	m.DedupID, m.DedupWindow = "pay-42", time.Hour
	m.MaxAttempts = 7
	m.Retry = &driver.RetryPolicy{Delays: []time.Duration{time.Second, time.Minute}, Base: time.Second, Factor: 1.5,
		Cap: time.Hour, NoJitter: true, MaxElapsed: 24 * time.Hour}
	return m
}

// dead is a dead letter with every field set.
func dead() *driver.DeadLetter {
	at := time.Date(2026, 3, 4, 5, 7, 0, 0, time.UTC)
	dl := &driver.DeadLetter{
		Message: full(),
		History: []driver.Failure{
			{At: at, Instance: "host-1", Attempt: 1, Duration: 15 * time.Millisecond, Reason: driver.ReasonTimeout,
				Error: "dial 10.0.0.7:443: timeout"},
			{At: at.Add(time.Second), Instance: "host-2", Attempt: 2, Duration: time.Microsecond, Reason: driver.ReasonPanic,
				Error: "boom", Stack: "goroutine 7 [running]:"},
		},
		Origin: driver.Origin{Topic: "orders", Group: "billing", Ref: driver.Ref{Partition: 3, Pos: 1 << 40, Sub: 2},
			Instance: "host-2"},
		Attempts: 2, Deliveries: 3, Rounds: 1,
	}
	dl.Bury(dl.History[1])
	return dl
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
