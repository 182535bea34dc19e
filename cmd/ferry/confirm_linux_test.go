package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ferrymq/ferry/driver"
)

// pty is a terminal with somebody in front of it.
type pty struct {
	keyboard *os.File // what is written here is typed
	tty      *os.File

	mu     sync.Mutex
	screen strings.Builder
	reader sync.WaitGroup
}

func newPTY(t *testing.T) *pty {
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{keyboard: keyboard, tty: tty}
	p.reader.Go(func() { _, _ = io.Copy(p, keyboard) }) // ends when the terminal is closed
	t.Cleanup(func() { _ = p.text(); _ = keyboard.Close() })
	return p
}

// Write is what appears on the screen.
func (p *pty) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.Write(b)
}

// text closes the terminal and returns all that appeared on it.
func (p *pty) text() string {
	_ = p.tty.Close()
	p.reader.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

// at gives the desk a terminal, on which somebody types.
func (d *desk) at(typed string) *pty {
	d.Helper()
	p := newPTY(d.T)
	if _, err := io.WriteString(p.keyboard, typed); err != nil {
		d.Fatal(err)
	}
	d.in, d.errTo = p.tty, p.tty
	return p
}

func TestOnATerminalTheNameMustBeTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed string
		gone  bool
	}{{"orders\n", true}, {" orders \n", true}, {"y\n", false}, {"yes\n", false}, {"order\n", false}, {"\n", false},
		{"\x04", false}} {
		d := newDesk(t)
		d.ok("pub", "orders", "x")
		term := d.at(c.typed)
		r := d.run("topic", "rm", "orders")
		screen := term.text()
		d.has(screen, "remove topic orders with 1 unsettled messages, 0 dead letters, 0 parse errors and groups: default",
			"type orders to go on: ")
		topics, err := d.driver.Topics(t.Context())
		if gone := len(topics) == 0; err != nil || gone != c.gone || (r.code == exitOK) != c.gone {
			t.Errorf("typed %q: deleted is %v, exit code %d, %v", c.typed, gone, r.code, err)
		}
		if !c.gone {
			d.has(screen, "hint: ")
		}
	}
}

func TestOnATerminalYesIsEnoughForLess(t *testing.T) {
	t.Parallel()
	for typed, gone := range map[string]bool{"y\n": true, "yes\n": true, "YES\n": true, "n\n": false, "\n": false} {
		d := newDesk(t)
		d.ok("pub", "orders", "x", "--id", "one")
		term := d.at(typed)
		r := d.run("msg", "rm", "orders", "one")
		screen := term.text()
		d.has(screen, "remove from topic orders: one")
		if left := d.stats("orders").Messages; (left == 0) != gone || (r.code == exitOK) != gone {
			t.Errorf("typed %q: %d left, exit code %d", typed, left, r.code)
		}
		if !gone {
			d.has(screen, "error: not confirmed; nothing was changed")
		}
	}
}

// Ctrl-C at the question ends the command, and nothing is changed.
func TestAQuestionCanBeInterrupted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("pub", "orders", "x")
	term := d.at("")
	ctx, interrupt := context.WithCancel(t.Context())
	d.driver = asking{d.driver, interrupt}
	if r := d.runUntil(ctx, "topic", "rm", "orders"); r.code != exitFailure || len(d.bodies("orders", "ready")) != 1 {
		t.Errorf("exit code %d", r.code)
	}
	if _, err := io.WriteString(term.keyboard, "\n"); err != nil { // lets the abandoned read end
		t.Fatal(err)
	}
	d.has(term.text(), "error: interrupted; nothing was changed")
}

// A device that is no terminal has nobody behind it either.
func TestNobodyAnswersFromTheNullDevice(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("pub", "orders", "x")
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	term := d.at("")
	d.in = null
	if r := d.run("topic", "rm", "orders"); r.code != exitUsage {
		t.Errorf("exit code %d", r.code)
	}
	d.has(term.text(), "hint: add --yes if you mean it")
}

// A progress bar is drawn on a terminal, and is gone at the end.
func TestPubDrawsABarOnATerminal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	term := d.at("")
	d.in = strings.NewReader(strings.Repeat("{\"body\":\"x\"}\n", 5000))
	if out := d.ok("pub", "orders", "--ndjson"); out != "published 5000 messages to orders\n" {
		t.Errorf("printed %q", out)
	}
	d.has(term.text(), "500 messages, ", "\x1b[1A\x1b[J")
}

// Bytes that would control the terminal are not written to it.
func TestRawBytesSpareTheTerminal(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{"{\n\t\"名\": 1\n}\n": true, "\x1b[2J": false, "\xff": false} {
		term := newPTY(t)
		r := &remote{process: process{out: term.tty}}
		if err := r.writeRaw([]byte(body)); (err == nil) != want {
			t.Errorf("%q: got %v", body, err)
		}
		if screen := term.text(); (screen != "") != want {
			t.Errorf("%q: the screen shows %q", body, screen)
		}
	}
}

// Colours only where somebody sees them, and not against NO_COLOR.
func TestDoctorIsColouredOnATerminalOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{{map[string]string{}, true}, {map[string]string{"NO_COLOR": "1"}, false},
		{map[string]string{"TERM": "dumb"}, false}} {
		d := newDesk(t)
		term := newPTY(t)
		s := session{remote: &remote{format: formatTable}, driver: d.driver}
		s.process = process{out: term.tty, env: func(n string) (string, bool) { v, ok := c.env[n]; return v, ok }}
		if err := s.showFindings([]findingView{{Severity: "warning", Subject: "x", Text: "y"}}); err != nil {
			t.Error(err)
		}
		screen := term.text()
		d.has(screen, "! warning")
		if got := strings.Contains(screen, "\x1b["); got != c.want {
			t.Errorf("%v: colours are %v: %q", c.env, got, screen)
		}
	}
}

// asking interrupts as soon as the command has looked at what it is going to ask about.
type asking struct {
	driver.Driver
	interrupt func()
}

func (a asking) Stats(ctx context.Context, topic string) (driver.TopicStats, error) {
	defer a.interrupt()
	return a.Driver.Stats(ctx, topic)
}
