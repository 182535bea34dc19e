package deadletter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

func sample() deadletter.Letter {
	m := &driver.Message{ID: "42", Topic: "orders", Key: "user-7",
		Body: []byte(`{"user":{"id":7},"items":[{"n":1},{"n":5}]}`), ContentType: "application/json",
		Headers: map[string]string{"trace": "abc"}, PublishedAt: time.Now().Add(-3 * time.Hour)}
	return deadletter.Letter{From: "orders",
		Entry: driver.Entry{Message: m, Group: "billing", State: driver.StateDead, Ref: driver.Ref{Pos: 9},
			Dead: &driver.DeadLetter{
				Message: m, Reason: driver.ReasonTimeout, Error: "timeout after 31 ms", Fingerprint: "timeout after # ms",
				Attempts: 4, Deliveries: 1, Rounds: 2,
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
		if got, err := f.Match(context.Background(), sample()); got != want || err != nil {
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
		`count(json, 2 in json) > 0`:              "column 18: json is not allowed inside a loop",
		`any(json, body contains string(#))`:      "column 11: body is not allowed inside a loop",
		`all(json, # == json)`:                    "column 16: json is not allowed inside a loop",
		`let x = json; count(x, # in x) > 0`:      "column 29: x is not allowed inside a loop",
		`count(json, stack contains "x") > 0`:     "column 13: stack is not allowed inside a loop",
		`one(json, # in headers)`:                 "column 16: headers is not allowed inside a loop",
		`any(json, let y = #; y == 1)`:            "let inside a loop",
		`any(json, $env.body == #)`:               "$env is not allowed",
		`any(json, # in $env["json"])`:            "$env is not allowed",
		`let a = [json, json]; a == a`:            "column 9: a list may have",
		`string([body, body]) == ""`:              "column 8: a list may have",
		`{"a": json} == json`:                     "maps are not allowed",
		`body matches "((a?){30}){30}"`:           "column 14: the pattern is too long",
		`any(json, "aaa" matches "a*a*b")`:        "only the element can match",
		`any(json, key matches "a*a*b")`:          "only the element can match",
		strings.Repeat("a", 5000):                 "too long",
		strings.Repeat("true and ", 300) + "true": "node",
	} {
		_, err := deadletter.ParseFilter(text)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%.60s: %v; want %q", text, err, want)
		}
	}
}

// What fails for every letter is told when the filter is read, with how to write it.
func TestConstantsThatAreNeverValidAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		`age > duration("nonsense")`:                          {`column 7: duration("nonsense") has no value`, `"24h"`},
		`key == "a" or age > duration("1 day")`:               {`column 21: duration("1 day") has no value`, `"24h"`},
		`any(json, # == "a" and age > duration(trim(" 3 ")))`: {"column 30", `"24h"`},
		`died_at > date("tomorrow")`:                          {`column 11: date("tomorrow") has no value`, "2026-01-31"},
		`died_at > date("31.01.2026", "2006-01-02")`:          {"column 11", "2026-01-31"},
		`attempts > int("three")`:                             {`column 12: int("three") has no value`, `"42"`},
		`size > float("1,5")`:                                 {`column 8: float("1,5") has no value`, `"1.5"`},
		`let least = duration("1x"); age > least`:             {"column 13", `"24h"`},
	} {
		_, err := deadletter.ParseFilter(text)
		var e *driver.Error
		if !errors.Is(err, driver.ErrInvalid) || !errors.As(err, &e) || !strings.Contains(e.Text, want[0]) ||
			!strings.Contains(e.Hint, want[1]) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	for _, text := range []string{`age > duration("1h")`, `died_at < date("31.01.2026", "02.01.2006")`, `died_at < now()`,
		`size > int("7")`, `age > duration(key)`} {
		if _, err := deadletter.ParseFilter(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAFilterThatCannotBeAskedMatchesNothing(t *testing.T) {
	t.Parallel()
	f, err := deadletter.ParseFilter(`json.a.b.c == 1`)
	if err != nil {
		t.Fatal(err)
	}
	yes, err := f.Match(context.Background(), sample())
	if yes || err == nil || !strings.Contains(err.Error(), "letter 42") {
		t.Errorf("%v, %v", yes, err)
	}
}

// hostile is a letter whose body makes loops long: a list of many short elements.
func hostile() deadletter.Letter {
	l := sample()
	l.Body = []byte("[" + strings.Repeat(`1,"a",[2],{"b":3},`, 3000) + "4]")
	l.Dead.Stack = strings.Repeat("a", 16<<10)
	return l
}

// Whatever is written as a filter: an error, or a verdict after a bounded number of steps. Never a panic.
func TestNoFilterHangsOrPanics(t *testing.T) {
	words := rapid.SampledFrom([]string{"reason", "json", "body", "stack", "key", "attempts", "headers", "any(json, ",
		"any(", "all(", "count(", "#", ")", "[", "]", ".", ",", "(", "+", "..", "==", ">", "and", "not", "1", "9999999",
		`"a"`, "matches", "contains", "in", "?", ":", "let x = ", "let x = json; ", "x", ";", "keys(", "values(", "len(",
		"lower(", "string(", "$env"})
	l := hostile()
	rapid.Check(t, func(t *rapid.T) {
		f, err := deadletter.ParseFilter(strings.Join(rapid.SliceOfN(words, 1, 12).Draw(t, "words"), " "))
		if err != nil {
			return
		}
		if n := f.Steps(len(l.Body)); n > 500*(128<<10+len(l.Body))*10 {
			t.Fatalf("%s may take %d steps", f.Text(), n)
		}
		_, _ = f.Match(context.Background(), l)
	})
}

// The steps grow with the letter and with what the filter does, and a letter that would take too many is not asked.
func TestFilterSteps(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	parse := func(text string) *deadletter.Filter {
		f, err := deadletter.ParseFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f := parse(`reason == "timeout" and attempts > 3`); f.Steps(0) != f.Steps(64*mib) {
		t.Errorf("%s does not look at the body, and takes %d steps for a large one", f.Text(), f.Steps(64*mib))
	}
	plain, nested := parse(`json.user.id == 7`), parse(`any(json.items, .n > 4 and .name matches "^[a-z]+$")`)
	if plain.Steps(4*mib) >= nested.Steps(4*mib) || nested.Steps(4*mib) > 500_000_000 {
		t.Errorf("%d and %d steps for 4 MiB", plain.Steps(4*mib), nested.Steps(4*mib))
	}
	greedy := parse(`body matches "(?:a?){100}b" or body matches "(?:b?){100}c"`)
	l := sample()
	if _, err := greedy.Match(t.Context(), l); err != nil {
		t.Errorf("a small letter: %v", err)
	}
	l.Body = []byte(strings.Repeat("a", 4*mib))
	_, err := greedy.Match(t.Context(), l)
	var e *driver.Error
	if !errors.Is(err, driver.ErrInvalid) || !errors.As(err, &e) || e.Hint == "" ||
		!strings.Contains(e.Text, "takes too long for letter 42") {
		t.Errorf("a letter that takes %d steps: %v", greedy.Steps(len(l.Body)), err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := plain.Match(ended, sample()); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}
