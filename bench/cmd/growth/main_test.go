package main

import (
	"strings"
	"testing"

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
