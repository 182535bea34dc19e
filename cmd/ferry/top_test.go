package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ferrymq/ferry/monitor"
)

func press(keys ...string) []tea.Msg {
	var out []tea.Msg
	for _, k := range keys {
		switch k {
		case "enter":
			out = append(out, tea.KeyPressMsg{Code: tea.KeyEnter})
		case "esc":
			out = append(out, tea.KeyPressMsg{Code: tea.KeyEscape})
		case "space":
			out = append(out, tea.KeyPressMsg{Code: tea.KeySpace, Text: " "})
		default:
			out = append(out, tea.KeyPressMsg{Code: []rune(k)[0], Text: k})
		}
	}
	return out
}

// after returns the model after some messages.
func after(m topModel, msgs ...tea.Msg) topModel {
	for _, msg := range msgs {
		next, _ := m.Update(msg)
		m = next.(topModel)
	}
	return m
}

func topFigures(ready int64) topSeen {
	return topSeen{Health: monitor.Health{Status: monitor.Healthy}, Queues: []monitor.Queue{
		{Topic: "orders"}, {Topic: "orders", Group: "billing", Ready: ready, Oldest: time.Minute},
		{Topic: "mails"}, {Topic: "mails", Group: "default", Ready: 5, Consumers: 3},
	}}
}

// order returns the topics that are shown, from top to bottom.
func order(m topModel) string {
	var names []string
	for _, q := range m.rows() {
		names = append(names, q.Topic)
	}
	return fmt.Sprint(names)
}

func TestTopSortsAndFilters(t *testing.T) {
	t.Parallel()
	m := after(topModel{broker: "memory://"}, topFigures(9))
	for _, test := range []struct {
		keys []string
		want string
	}{
		{nil, "[mails orders]"},
		{[]string{"s", "s"}, "[orders mails]"},
		{[]string{"S"}, "[mails orders]"},
		{[]string{"/", "b", "i", "l", "l", "enter"}, "[orders]"},
		{[]string{"/", "x"}, "[]"},
		{[]string{"/", "x", "esc"}, "[mails orders]"},
		{[]string{"/", "q", "enter", "esc"}, "[mails orders]"},
	} {
		if got := order(after(m, press(test.keys...)...)); got != test.want {
			t.Errorf("after %v: %s, want %s", test.keys, got, test.want)
		}
	}
	if _, quit := m.Update(press("q")[0]); quit == nil {
		t.Error("q does not end it")
	}
}

// TestTopStops: while it is stopped nothing moves, and looks go on.
func TestTopStops(t *testing.T) {
	t.Parallel()
	m := after(topModel{}, append(append([]tea.Msg{topFigures(9)}, press("space")...), topFigures(1))...)
	if m.rows()[1].Ready != 9 || !strings.Contains(m.screen(), "stopped") {
		t.Errorf("it moved:\n%s", m.screen())
	}
	if m = after(m, append(press("space"), topFigures(1))...); m.rows()[1].Ready != 1 {
		t.Error("it does not go on")
	}
	if _, next := m.Update(topFigures(1)); next == nil {
		t.Error("there is no next look")
	}
}

func TestTopScreen(t *testing.T) {
	t.Parallel()
	m := after(topModel{broker: "memory://"}, topFigures(9), tea.WindowSizeMsg{Height: 6})
	got := m.screen()
	if lines := strings.Split(got, "\n"); len(lines) > 6 || !strings.Contains(got, "[topic]") ||
		!strings.Contains(got, "... and 1 more") {
		t.Errorf("on six lines:\n%s", got)
	}
	m = after(m, tea.WindowSizeMsg{Height: 40})
	if got := m.screen(); !strings.Contains(got, "1m0s") || !strings.Contains(got, "billing") {
		t.Errorf("on forty lines:\n%s", got)
	}
	away := topFigures(1)
	away.Err = errors.New("no\x1broute")
	if got := after(m, away).screen(); !strings.Contains(got, "does not answer") || strings.Contains(got, "no\x1b") {
		t.Errorf("without a broker:\n%q", got)
	}
}
