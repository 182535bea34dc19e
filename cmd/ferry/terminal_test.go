package main

import (
	"os"
	"strings"
	"testing"
)

func noEnv(string) (string, bool) { return "", false }

func TestNoEscapeSequencesOutsideATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	term := newTerminal(process{env: noEnv, out: &out})
	if term.live || term.color {
		t.Error("a buffer is taken for a terminal")
	}
	term.printf("%s", term.green("✓")+term.dim("-")+term.bold("!"))
	if out.String() != "✓-!" {
		t.Errorf("printed %q", out.String())
	}
}

func TestTerminalHonoursItsEnvironment(t *testing.T) {
	t.Parallel()
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = device.Close() }()
	for _, c := range []struct {
		env         map[string]string
		live, color bool
	}{
		{nil, true, true},
		{map[string]string{"NO_COLOR": "1"}, true, false},
		{map[string]string{"NO_COLOR": ""}, true, true},
		{map[string]string{"TERM": "dumb"}, false, false},
	} {
		term := newTerminal(process{out: device, env: func(n string) (string, bool) { v, ok := c.env[n]; return v, ok }})
		if term.live != c.live || term.color != c.color {
			t.Errorf("%v: live %v, color %v; want %v, %v", c.env, term.live, term.color, c.live, c.color)
		}
	}
}

func TestDrawReplacesWhatItDrew(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	term := &terminal{w: &out, live: true}
	term.draw("one\ntwo\n")
	if strings.Contains(out.String(), "A\x1b[J") {
		t.Errorf("the first picture replaces something: %q", out.String())
	}
	out.Reset()
	term.draw("three")
	if !strings.HasPrefix(out.String(), "\x1b[2A\x1b[J") {
		t.Errorf("the second picture does not replace the two lines of the first: %q", out.String())
	}
	out.Reset()
	term.printf("below\n")
	term.draw("four")
	if strings.Contains(out.String(), "\x1b[J") {
		t.Errorf("a picture replaces what was printed: %q", out.String())
	}
}
