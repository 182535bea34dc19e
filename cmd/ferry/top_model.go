package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/ferrymq/ferry/monitor"
)

// topModel is what ferry top shows, and what its keys have changed of that.
type topModel struct {
	broker string
	every  time.Duration
	look   func() monitor.Figures

	seen    monitor.Figures
	column  int // that rows are sorted by
	filter  string
	typing  bool // the filter
	stopped bool
	height  int // of the terminal; zero: not known yet
}

type (
	// topSeen is what a look saw.
	topSeen monitor.Figures
	// topDue says that it is time for the next look.
	topDue struct{}
)

// topColumns are the columns, with what rows are sorted by: the largest first, and names in their order.
var topColumns = []struct {
	title string
	width int
	less  func(a, b monitor.Queue) int
	cell  func(q monitor.Queue) string
}{
	{"topic", -24, func(a, b monitor.Queue) int { return cmp.Compare(a.Topic, b.Topic) },
		func(q monitor.Queue) string { return q.Topic }},
	{"group", -16, func(a, b monitor.Queue) int { return cmp.Compare(a.Group, b.Group) },
		func(q monitor.Queue) string { return q.Group }},
	{"ready", 9, func(a, b monitor.Queue) int { return cmp.Compare(b.Ready, a.Ready) },
		func(q monitor.Queue) string { return fmt.Sprint(q.Ready) }},
	{"inflight", 9, func(a, b monitor.Queue) int { return cmp.Compare(b.Inflight, a.Inflight) },
		func(q monitor.Queue) string { return fmt.Sprint(q.Inflight) }},
	{"waiting", 8, func(a, b monitor.Queue) int { return cmp.Compare(b.Waiting, a.Waiting) },
		func(q monitor.Queue) string { return fmt.Sprint(q.Waiting) }},
	{"dead", 7, func(a, b monitor.Queue) int { return cmp.Compare(b.Dead, a.Dead) },
		func(q monitor.Queue) string { return fmt.Sprint(q.Dead) }},
	{"in/s", 8, func(a, b monitor.Queue) int { return cmp.Compare(b.InPerSecond, a.InPerSecond) },
		func(q monitor.Queue) string { return fmt.Sprintf("%.1f", q.InPerSecond) }},
	{"out/s", 8, func(a, b monitor.Queue) int { return cmp.Compare(b.OutPerSecond, a.OutPerSecond) },
		func(q monitor.Queue) string { return fmt.Sprintf("%.1f", q.OutPerSecond) }},
	{"oldest", 9, func(a, b monitor.Queue) int { return cmp.Compare(b.Oldest, a.Oldest) },
		func(q monitor.Queue) string { return q.Oldest.Round(time.Second).String() }},
	{"workers", 8, func(a, b monitor.Queue) int { return cmp.Compare(b.Consumers, a.Consumers) },
		func(q monitor.Queue) string { return fmt.Sprint(q.Consumers) }},
}

// Init begins with a look.
func (m topModel) Init() tea.Cmd { return m.next() }

// next looks.
func (m topModel) next() tea.Cmd { return func() tea.Msg { return topSeen(m.look()) } }

// Update takes over what was seen, or what a key changes.
func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case topSeen:
		if !m.stopped {
			m.seen = monitor.Figures(msg)
		}
		return m, tea.Tick(m.every, func(time.Time) tea.Msg { return topDue{} })
	case topDue:
		return m, m.next()
	case tea.WindowSizeMsg:
		m.height = msg.Height
	case tea.KeyPressMsg:
		if m.typing && msg.String() != "ctrl+c" {
			return m.typed(msg.String(), msg.Text), nil
		}
		return m.key(msg.String())
	}
	return m, nil
}

func (m topModel) key(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "s":
		m.column = (m.column + 1) % len(topColumns)
	case "S", "shift+s":
		m.column = (m.column + len(topColumns) - 1) % len(topColumns)
	case "/":
		m.typing = true
	case "esc":
		m.filter = ""
	case "space", " ":
		m.stopped = !m.stopped
	}
	return m, nil
}

// typed adds to the filter; enter keeps it, and escape forgets it.
func (m topModel) typed(key, text string) topModel {
	switch key {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		m.filter = m.filter[:max(0, len(m.filter)-1)]
	default:
		m.filter += text
	}
	return m
}

// rows are the groups that the filter leaves, in order.
func (m topModel) rows() []monitor.Queue {
	rows := slices.DeleteFunc(slices.Clone(m.seen.Queues), func(q monitor.Queue) bool {
		return q.Group == "" || !strings.Contains(q.Topic+" "+q.Group, m.filter)
	})
	slices.SortStableFunc(rows, topColumns[m.column].less)
	return rows
}

// View draws the screen.
func (m topModel) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	return v
}

func (m topModel) screen() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s   %s   %d ready   %.1f in/s   %.1f out/s   %d workers%s\n", m.broker,
		cmp.Or(m.seen.Health.Status, "..."), m.seen.Ready, m.seen.InPerSecond, m.seen.OutPerSecond,
		m.workers(), m.state())
	if m.seen.Err != nil {
		fmt.Fprintf(&b, "the broker does not answer: %v\n", printable(m.seen.Err.Error()))
	}
	b.WriteString("\n" + m.titles() + "\n")
	rows := m.rows()
	room := len(rows)
	if m.height > 0 {
		room = max(0, min(room, m.height-strings.Count(b.String(), "\n")-2))
	}
	for _, q := range rows[:room] {
		b.WriteString(topLine(func(i int) string { return topColumns[i].cell(q) }) + "\n")
	}
	if hidden := len(rows) - room; hidden > 0 {
		fmt.Fprintf(&b, "... and %d more\n", hidden)
	}
	b.WriteString("s sort  / filter  space stop  q quit")
	return b.String()
}

// workers counts the consumers of all groups.
func (m topModel) workers() int {
	n := 0
	for _, q := range m.seen.Queues {
		n += q.Consumers
	}
	return n
}

// state says what the keys have changed.
func (m topModel) state() string {
	out := ""
	if m.stopped {
		out += "   stopped"
	}
	if m.typing || m.filter != "" {
		out += "   /" + m.filter
	}
	return out
}

// titles mark the column that rows are sorted by.
func (m topModel) titles() string {
	return topLine(func(i int) string {
		if i == m.column {
			return "[" + topColumns[i].title + "]"
		}
		return topColumns[i].title
	})
}

// topLine puts cells into columns. Names of topics and groups are ASCII: a byte is a place on the screen.
func topLine(cell func(i int) string) string {
	var b strings.Builder
	for i, c := range topColumns {
		text := cell(i)
		if width := max(c.width, -c.width); len(text) > width {
			text = text[:width]
		}
		fmt.Fprintf(&b, "%*s ", c.width, text)
	}
	return strings.TrimRight(b.String(), " ")
}
