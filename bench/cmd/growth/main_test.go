package main

import (
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/bench/growth"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	if b, s, err := choose("all", ""); err != nil || len(b) != 5 || len(s) != len(growth.Shapes()) {
		t.Errorf("all: %v, %d shapes, %v", b, len(s), err)
	}
	if b, s, err := choose("disk,redis", "keys"); err != nil || len(b) != 2 || len(s) != 1 || s[0].Name != "keys" {
		t.Errorf("two brokers, one shape: %v, %v, %v", b, s, err)
	}
	for _, wrong := range [][2]string{{"gateway", ""}, {"all", "depth"}} {
		if _, _, err := choose(wrong[0], wrong[1]); err == nil || !strings.Contains(err.Error(), "there are:") {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

// TestWrite: a size that costs more than it may is called missed, one that does not is met.
func TestWrite(t *testing.T) {
	t.Parallel()
	row := func(size int, cpu time.Duration) growth.Row {
		return growth.Row{Broker: "memory", Size: size, Rounds: []growth.Cost{{Units: 1000, CPU: cpu, IdleBytes: 12}}}
	}
	var text strings.Builder
	write(&text, growth.Shape{Title: "messages", Unit: "message", Idle: "key"},
		[]growth.Row{row(10, 2*time.Millisecond), row(1000, 2200*time.Microsecond), row(1_000_000, 3*time.Millisecond)})
	late := growth.Row{Broker: "memory", Size: 1_000_000, Unreached: "1M takes longer than 1m0s here"}
	write(&text, growth.Shape{Title: "messages", Unit: "message"}, []growth.Row{row(10, 2*time.Millisecond), late})
	write(&text, growth.Shape{Title: "nothing", Unit: "message"}, []growth.Row{late})
	got := text.String()
	for _, want := range []string{"10: 2.00 µs/message | 1k: 2.20 µs/message | 1.10× | ≤ 1.2×: met | 12 B of an idle key",
		"1M: 3.00 µs/message | 1.50× | ≤ 1.2×: **missed**",
		"10: 2.00 µs/message | 1M: – | – | – | not reached: 1M takes longer than 1m0s here |",
		"nothing | – | – | – | – | not reached: 1M takes longer"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
