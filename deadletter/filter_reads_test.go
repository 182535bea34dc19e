package deadletter_test

import (
	"testing"

	"github.com/ferrymq/ferry/deadletter"
)

// TestFilterReads: a field is read wherever it stands, and a text that looks like one is none.
func TestFilterReads(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`body contains "x"`:                         true,
		`reason == "body"`:                          false,
		`size > 3 and (attempts > 1 or body == "")`: true,
		`any(keys(headers), # == key)`:              false,
	} {
		f, err := deadletter.ParseFilter(text)
		if err != nil {
			t.Fatal(err)
		}
		if f.Reads("body") != want {
			t.Errorf("%s reads the body: %v, want %v", text, !want, want)
		}
	}
	var none *deadletter.Filter
	if none.Reads("body") {
		t.Error("no filter reads the body")
	}
}
