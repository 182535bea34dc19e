package jsontime_test

import (
	"encoding/json"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/jsontime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTimesHaveOneForm(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("there", 8*3600)
	for want, at := range map[string]time.Time{
		`"2026-01-31T00:00:00.000Z"`: time.Date(2026, 1, 31, 8, 0, 0, 0, zone),
		`"2026-01-31T00:00:00.120Z"`: time.Date(2026, 1, 31, 0, 0, 0, 120_999_999, time.UTC),
	} {
		got, err := json.Marshal(jsontime.At(at))
		if err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	var read jsontime.Time
	for _, text := range []string{`"2026-01-31T08:00:00.000000001+08:00"`, `"2026-01-31T00:00:00Z"`} {
		if err := json.Unmarshal([]byte(text), &read); err != nil ||
			!read.Truncate(time.Millisecond).Equal(time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s is read as %v, %v", text, read, err)
		}
	}
	if got, err := json.Marshal(struct {
		At *jsontime.Time `json:"at,omitempty"`
	}{jsontime.At(time.Time{})}); err != nil || string(got) != "{}" {
		t.Errorf("no time is %s, %v", got, err)
	}
}

func TestDurationsAreTexts(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(jsontime.Duration(1500 * time.Millisecond))
	if err != nil || string(got) != `"1.5s"` {
		t.Errorf("%s, %v", got, err)
	}
	for text, want := range map[string]time.Duration{`"1.5s"`: 1500 * time.Millisecond,
		`1500000000`: 1500 * time.Millisecond, `0`: 0, `"-1ms"`: -time.Millisecond} {
		var d jsontime.Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s is read as %v, %v", text, d, err)
		}
	}
	for _, text := range []string{`"soon"`, `1.5`, `true`, `"`, `{}`} {
		var d jsontime.Duration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s is read as %v", text, d)
		}
	}
}
