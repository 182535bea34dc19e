package main

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const passed = `{"Action":"output","Package":"p","Test":"TestA",` +
	`"Output":"    drivertest: tried again because the machine stalled, number 1\n"}
{"Action":"pass","Package":"p","Test":"TestA/sub","Elapsed":9}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":9.5}
{"Action":"output","Package":"p","Output":"ok  \tp\t10.0s\n"}
{"Action":"pass","Package":"p","Elapsed":10}
`

func TestSummary(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		fails    bool
		want     []string
		not      string
	}{
		{"passed", passed, false, []string{"ok  \tp\t10.0s", "10.0s  p\n", "9.5s  p.TestA\n", "stalled: 1",
			"1 packages, 10s one after the other, 3s together, 0 failed"}, "TestA/sub"},
		{"failed", passed + `{"Action":"output","Package":"q","Test":"TestB","Output":"    q_test.go:1: LOST\n"}
{"Action":"fail","Package":"q","Test":"TestB","Elapsed":1}
{"Action":"fail","Package":"q","Elapsed":1}
`, true, []string{"q_test.go:1: LOST", "2 packages", "2 failed"}, ""},
		{"died", `{"Action":"output","Package":"q","Test":"TestB","Output":"panic: test timed out\\n"}
{"Action":"output","Package":"q","Output":"FAIL q\\n"}
{"Action":"fail","Package":"q","Elapsed":1}
`, true, []string{"TestB of q did not end", "panic: test timed out", "1 failed"}, ""},
		{"does not compile", `{"ImportPath":"p","Action":"build-output","Output":"p.go:3: no\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p","Elapsed":0}
`, true, []string{"p.go:3: no"}, ""},
		{"not json", "go: downloading x\n", false, []string{"go: downloading x"}, ""},
	} {
		var out strings.Builder
		err := run(strings.NewReader(tc.in), &out, time.Now().Add(-3*time.Second))
		if (err != nil) != tc.fails {
			t.Errorf("%s: error %v", tc.name, err)
		}
		for _, text := range tc.want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: no %q in:\n%s", tc.name, text, out.String())
			}
		}
		if tc.not != "" && strings.Contains(out.String(), tc.not) {
			t.Errorf("%s: %q in:\n%s", tc.name, tc.not, out.String())
		}
	}
}
