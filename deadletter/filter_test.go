package deadletter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/stall"
)

func sample() deadletter.Letter {
	m := &driver.Message{ID: "42", Topic: "orders", Key: "user-7", Body: []byte(`{"user":{"id":7},"items":[{"n":1},{"n":5}]}`), ContentType: "application/json",
		Headers: map[string]string{"trace": "abc"}, PublishedAt: time.Now().Add(-3 * time.Hour)}
	return deadletter.Letter{From: "orders", Entry: driver.Entry{Message: m, Group: "billing", State: driver.StateDead, Ref: driver.Ref{Pos: 9}, Dead: &driver.DeadLetter{
		Message: m, Reason: driver.ReasonTimeout, Error: "timeout after 31 ms", Fingerprint: "timeout after # ms", Attempts: 4, Deliveries: 1, Rounds: 2,
		Recoverable: true, Action: driver.ActionDelayedRetry, DiedAt: time.Now().Add(-2 * time.Hour)}}}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`reason == "timeout" and attempts > 3 and key startsWith "user-"`: true,
		`reason == "timeout" and attempts > 4`:                            false,
		`reason in ["timeout", "panic"]`:                                  true,
		`error matches "after [0-9]+ ms"`:                                 true,
		`fingerprint == "timeout after # ms" && rounds == 2`:              true,
		`headers.trace == "abc" and headers["other"] == ""`:               true,
		`json.user.id == 7`:                                               true,
		`json?.customer?.id == 7`:                                         false,
		`any(json.items, .n > 4)`:                                         true,
		`body contains "items" and size > 10`:                             true,
		`age > duration("1h") and age < duration("3h")`:                   true,
		`died_at > date("2000-01-01") and published_at < died_at`:         true,
		`topic == "orders" and group == "billing" and ref == "0-9"`:       true,
		`recoverable and action == "delayed_retry" and deliveries == 1`:   true,
		`not (id == "42")`:                                                false,
		`problem == ""`:                                                   true,
	} {
		f, err := deadletter.ParseFilter(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := f.Match(sample()); got != want || err != nil {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestABrokenFilterPointsAtTheColumn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`reason = "timeout"`:                      "column 8",
		`attempts > 3 and raeson`:                 "column 18",
		`attempts > "3"`:                          "column 10",
		"attempts > 3 and\n  nope":                "line 2, column 3",
		`attempts`:                                "bool",
		``:                                        "column 1",
		`any(json, any(#, # > 1))`:                "column 18: a loop inside a loop",
		`1 in 1..100000000`:                       "ranges are not allowed",
		`body matches key`:                        "column 6: the pattern",
		`body + body + body == ""`:                "only numbers and times can be added",
		`2 ** 3 == attempts`:                      "powers are not allowed",
		`repeat(body, 1000) == ""`:                "column 1",
		`len(map(json, #)) > 1`:                   "column 5",
		`reduce(json, # + #acc) > 1`:              "column 1",
		strings.Repeat("a", 5000):                 "too long",
		strings.Repeat("true and ", 300) + "true": "node",
	} {
		_, err := deadletter.ParseFilter(text)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%.60s: %v; want %q", text, err, want)
		}
	}
}

func TestAFilterThatCannotBeAskedMatchesNothing(t *testing.T) {
	t.Parallel()
	f, err := deadletter.ParseFilter(`json.a.b.c == 1`)
	if err != nil {
		t.Fatal(err)
	}
	yes, err := f.Match(sample())
	if yes || err == nil || !strings.Contains(err.Error(), "letter 42") {
		t.Errorf("%v, %v", yes, err)
	}
}

// Whatever is written as a filter: an error, or a verdict. Never a panic, and never long.
func TestNoFilterHangsOrPanics(t *testing.T) {
	words := rapid.SampledFrom([]string{"reason", "json", "body", "attempts", "headers", "any(", "all(", "count(", "#", ")", "[", "]", ".", ",", "(", "+", "..", "==", ">", "and", "not", "1", "9999999", `"a"`, "matches", "in", "?", ":", "let x = ", ";", "keys(", "len("})
	machine := stall.Watch(t)
	rapid.Check(t, func(t *rapid.T) {
		f, err := deadletter.ParseFilter(strings.Join(rapid.SliceOfN(words, 1, 12).Draw(t, "words"), " "))
		if err != nil {
			return
		}
		begin := time.Now()
		_, _ = f.Match(sample())
		if took := machine.Elapsed(begin); took > 2*time.Second {
			t.Fatalf("%s took %v", f.Text(), took)
		}
	})
}
