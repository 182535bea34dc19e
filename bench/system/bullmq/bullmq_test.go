package bullmq

import (
	"strings"
	"testing"
)

// TestWhatCannotRunSaysWhy: a peer that is not measured must be reported, never dropped.
func TestWhatCannotRunSaysWhy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := New()
	if why := s.Answers("drain"); !strings.Contains(why, "node is not installed") {
		t.Errorf("without Node: %q", why)
	}
	if why := s.Answers("keys-1"); !strings.Contains(why, "no such scenario") {
		t.Errorf("unknown scenario: %q", why)
	}
}

func TestTheVersionIsThePinnedOne(t *testing.T) {
	t.Parallel()
	if v := New().Info().Version; v == "" || v == "unknown" || !strings.Contains(string(lock), `"version": "`+v+`"`) {
		t.Errorf("version %q is not in the lock", v)
	}
}
