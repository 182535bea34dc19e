package letterjson_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/letterjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A message survives its record whole, whatever bytes are in it.
func TestARecordLosesNothing(t *testing.T) {
	bytes := rapid.SliceOfN(rapid.Byte(), 0, 40)
	rapid.Check(t, func(t *rapid.T) {
		m := &driver.Message{
			ID: rapid.StringMatching(`[a-z0-9]{1,8}`).Draw(t, "id"), OwnID: rapid.Bool().Draw(t, "own"), Topic: "orders",
			Key: rapid.StringN(0, 8, 32).Draw(t, "key"), Body: bytes.Draw(t, "body"), ContentType: "text/plain",
			Priority:    driver.Priority(rapid.IntRange(-1, 2).Draw(t, "priority")),
			TTL:         time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "ttl")),
			MaxAttempts: rapid.IntRange(0, 9).Draw(t, "attempts"), Retry: &driver.RetryPolicy{Base: time.Second, Factor: 2},
			PublishedAt: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "published"), 5e6).UTC(),
			Headers:     map[string]string{"a": string(bytes.Draw(t, "header")), "b": "2"},
		}
		e := driver.Entry{Message: m, Group: "g", State: driver.StateDead, Ref: driver.Ref{Pos: 7}, Dead: &driver.DeadLetter{
			Message: m, Reason: driver.ReasonTimeout, Error: "slow", Rounds: 2, DiedAt: time.Unix(9, 0).UTC(),
			History: []driver.Failure{{Attempt: 1, Error: "slow", Duration: time.Second}}}}
		line, err := letterjson.Of("orders", e).Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := letterjson.Decode(line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Message()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
		if r.Dead.Rounds != 2 || r.Group != "g" || r.Ref != "0-7" || len(r.History) != 1 {
			t.Fatalf("%+v", r)
		}
	})
}

func TestBadLinesAreRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{``, `{`, `[]`, `{"topic":"a"} {}`, `{"topic":"a","boddy":"x"}`,
		`{"topic":"a","priority":"huge"}`, `{"topic":"a","body":"x","body_base64":"eA=="}`} {
		r, err := letterjson.Decode([]byte(line))
		if err == nil {
			_, err = r.Message()
		}
		if err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

// Times have one form, durations are texts; what was written before they were is read as well.
func TestTimesAndDurations(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 8, 0, 0, 120_000_000, time.FixedZone("there", 8*3600))
	m := &driver.Message{ID: "a", Topic: "orders", TTL: 90 * time.Second, PublishedAt: at,
		Retry: &driver.RetryPolicy{Delays: []time.Duration{time.Second}}}
	e := driver.Entry{Message: m, State: driver.StateDead, Dead: &driver.DeadLetter{Message: m, DiedAt: at,
		History: []driver.Failure{{At: at, Attempt: 1, Duration: 1500 * time.Millisecond}}}}
	line, err := letterjson.Of("orders", e).Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ttl":"1m30s"`, `"delays":["1s"]`, `"published_at":"2026-01-31T00:00:00.120Z"`,
		`"died_at":"2026-01-31T00:00:00.120Z"`,
		`"at":"2026-01-31T00:00:00.120Z"`, `"duration":"1.5s"`} {
		if !strings.Contains(string(line), want) {
			t.Errorf("%s is missing in %s", want, line)
		}
	}
	r, err := letterjson.Decode([]byte(`{"topic":"orders","id":"a","ttl":90000000000,"dedup_id":"d",
		"dedup_window":1000000000,"retry":{"delays":[1000000000]},
		"published_at":"2026-01-31T08:00:00.12+08:00",
		"history":[{"attempt":1,"duration":1500000000,"reason":"","error":""}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Message()
	if err != nil || got.TTL != 90*time.Second || got.DedupWindow != time.Second || got.Retry.Delays[0] != time.Second ||
		!got.PublishedAt.Equal(at) {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"topic":"orders","body":"x","dead":{"reason":"timeout"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := letterjson.Decode(line)
		if err != nil {
			return
		}
		if _, err := r.Append(nil); err != nil {
			t.Error(err)
		}
		_, _ = r.Message()
	})
}
