package redistest

import (
	"strings"
	"syscall"
	"testing"
)

// TestKillEndsWhatItForked: a server that is killed while it saves leaves nobody behind who writes into its directory.
func TestKillEndsWhatItForked(t *testing.T) {
	t.Parallel()
	s := Single(t, Options{})
	for _, command := range [][]string{{"SET", "a", "b"},
		{"CONFIG", "SET", "rdb-key-save-delay", "60000000"}, {"BGSAVE"}} {
		if _, err := s.Command(command...); err != nil {
			t.Fatalf("%s: %v", strings.Join(command, " "), err)
		}
	}
	pid := s.process.pid()
	s.Kill()
	if err := syscall.Kill(-pid, 0); err == nil {
		t.Error("the process that saves lives on")
	}
}
