package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestWrongFlagsSayWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"-broker", "rabbit"}, []string{`no broker "rabbit"`, "memory", "all"}},
		{[]string{"-broker", "memory", "-only", "nonsense"}, []string{`no scenario matches "nonsense"`, "pickup",
			"through-single-1KB"}},
		{[]string{"-broker", "memory,rabbit", "-only", "idle"}, []string{`no broker "rabbit"`}},
		{[]string{"memory"}, []string{`unexpected argument "memory"`, "-broker"}},
		{[]string{"-fast"}, []string{"not defined: -fast"}},
		{[]string{"-sample", "{"}, []string{"-sample is for this program itself"}},
		{[]string{"-sample", `{"broker":"rabbit"}`}, []string{`no broker "rabbit"`}},
	} {
		err := bench(context.Background(), append([]string{"-results", t.TempDir()}, tt.args...), &bytes.Buffer{})
		if err == nil {
			t.Errorf("%v is accepted", tt.args)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %q lacks %q", tt.args, err, want)
			}
		}
	}
}

func TestListNamesEverything(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := bench(context.Background(), []string{"-list"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"broker memory", "watermill gochannel", "NATS JetStream (memory)", "raw channel",
		"idle pickup latency",
		"broker redis", "asynq", "BullMQ", "raw Redis", "broker disk", "NATS JetStream (file, sync always)", "River (SQLite)",
		"raw Pebble"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the list lacks %q", want)
		}
	}
}
