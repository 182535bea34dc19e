package main

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

// shows waits until the terminal shows a text.
func (p *pty) shows(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		screen := p.screen.String()
		p.mu.Unlock()
		if strings.Contains(screen, text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %q on the screen:\n%q", text, screen)
		}
	}
}

func (p *pty) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(p.keyboard, keys); err != nil {
		t.Fatal(err)
	}
}

// TestTopOnATerminal: it shows the topics of a real broker, obeys keys, and ends with q.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	address := redistest.Single(t, redistest.Options{}).URL()
	b, err := open.URL(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	for _, topic := range []string{"orders", "mails"} {
		if _, err := ferry.Publish(t.Context(), b, topic, "x"); err != nil {
			t.Fatal(err)
		}
	}
	p := newPTY(t)
	if err := unix.IoctlSetWinsize(int(p.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "ferry", "top", "--every", "100ms", "--broker", address)
	c.Env = append(c.Environ(), "TERM=xterm-256color")
	c.Stdin, c.Stdout, c.Stderr = p.tty, p.tty, p.tty
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p.shows(t, "orders")
	p.shows(t, "mails")
	p.types(t, " ")
	p.shows(t, "stopped")
	p.types(t, "q")
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%q", err, p.text())
	}
}
