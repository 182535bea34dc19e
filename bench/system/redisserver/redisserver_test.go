package redisserver

import "testing"

// TestUsageIsWhatTheServerDid: what the bench itself asks must not count, and what others send must.
func TestUsageIsWhatTheServerDid(t *testing.T) {
	t.Parallel()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	before, err := s.Usage()
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if again.Commands != before.Commands || again.Keys != 0 {
		t.Errorf("an idle server went from %+v to %+v", before, again)
	}
	for _, key := range []string{"a", "b", "c"} {
		if _, err := s.Command("SETRANGE", key, "100000", "x"); err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if after.Commands-before.Commands != 3 || after.Keys != 3 || after.Bytes-before.Bytes < 300_000 ||
		after.CPU < before.CPU {
		t.Errorf("after three commands %+v became %+v", before, after)
	}
}
