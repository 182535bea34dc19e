package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// terminal is where a command prints. Escape sequences go out only where somebody can see their effect.
type terminal struct {
	w     io.Writer
	live  bool // a terminal: lines can be drawn over
	color bool
	drawn int // lines that the next draw replaces
}

func newTerminal(p process) *terminal {
	return newTerminalOn(p, p.out)
}

// newTerminalOn prints to w, standard error for example.
func newTerminalOn(p process, w io.Writer) *terminal {
	name, _ := p.env("TERM")
	noColor, _ := p.env("NO_COLOR")
	live := isTerminal(w) && name != "dumb"
	return &terminal{w: w, live: live, color: live && noColor == ""}
}

// isTerminal tells of an input or output whether somebody sits behind it.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// printf prints below whatever was drawn; that stays as it is.
func (t *terminal) printf(format string, args ...any) {
	t.drawn = 0
	_, _ = fmt.Fprintf(t.w, format, args...)
}

// draw prints lines in place of those drawn before. Long lines are cut by the terminal: a wrapped one would count as
// two, and the picture would creep down the screen.
func (t *terminal) draw(picture string) {
	picture = strings.TrimRight(picture, "\n") + "\n"
	var b strings.Builder
	if t.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", t.drawn)
	}
	b.WriteString("\x1b[?7l" + picture + "\x1b[?7h")
	t.drawn = strings.Count(picture, "\n")
	_, _ = io.WriteString(t.w, b.String())
}

// erase removes what was drawn.
func (t *terminal) erase() {
	if t.drawn > 0 {
		_, _ = fmt.Fprintf(t.w, "\x1b[%dA\x1b[J", t.drawn)
	}
	t.drawn = 0
}

func (t *terminal) green(s string) string { return t.paint("32", s) }
func (t *terminal) dim(s string) string   { return t.paint("2", s) }
func (t *terminal) bold(s string) string  { return t.paint("1", s) }

func (t *terminal) paint(code, s string) string {
	if !t.color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
