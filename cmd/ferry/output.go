package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Formats of --output.
const (
	formatTable  = "table"
	formatJSON   = "json"
	formatNDJSON = "ndjson"
)

// column is one column of a table of Ts.
type column[T any] struct {
	title  string
	number bool // to the right
	width  int  // at most; 0: as wide as it is
	cell   func(T) any
}

// listing prints rows: as a table, one JSON array, or one JSON object on each line.
type listing[T any] struct {
	w       io.Writer
	format  string
	columns []column[T]
	// live prints each row of a table at once, in columns that are all as wide as they may be.
	live  bool
	rows  []T // of a table that are not printed yet
	count int
}

// tablePart is how many rows of a table are gathered, so that memory stays bounded.
const tablePart = 1000

func newListing[T any](r *remote, columns []column[T]) *listing[T] {
	return &listing[T]{w: r.out, format: r.format, columns: columns}
}

// list prints rows that are all there. Empty is said instead of a table without rows.
func list[T any](r *remote, columns []column[T], rows []T, empty string) error {
	l := newListing(r, columns)
	for _, row := range rows {
		if err := l.add(row); err != nil {
			return err
		}
	}
	return l.end(empty)
}

func (l *listing[T]) add(row T) error {
	l.count++
	switch {
	case l.format == formatNDJSON:
		return writeJSON(l.w, row, "")
	case l.format == formatJSON:
		return l.element(row)
	case l.live:
		return l.line(row)
	}
	if l.rows = append(l.rows, row); len(l.rows) < tablePart {
		return nil
	}
	return l.flush()
}

// element writes one element of a JSON array.
func (l *listing[T]) element(row T) error {
	b, err := encodeJSON(row, "  ", "  ")
	if err != nil {
		return err
	}
	before := ",\n  "
	if l.count == 1 {
		before = "[\n  "
	}
	_, err = io.WriteString(l.w, before+strings.TrimSuffix(string(b), "\n"))
	return err
}

// end prints what is left.
func (l *listing[T]) end(empty string) error {
	switch {
	case l.format == formatJSON && l.count == 0:
		_, err := io.WriteString(l.w, "[]\n")
		return err
	case l.format == formatJSON:
		_, err := io.WriteString(l.w, "\n]\n")
		return err
	case l.format == formatTable && l.count == 0 && empty != "":
		_, err := fmt.Fprintln(l.w, printable(empty))
		return err
	}
	return l.flush()
}

func (l *listing[T]) flush() error {
	if len(l.rows) == 0 {
		return nil
	}
	titles := make([]string, len(l.columns))
	for i, c := range l.columns {
		titles[i] = c.title
	}
	t := newTable(titles...)
	t.SetColumnConfigs(columnConfigs(l.columns))
	t.SuppressTrailingSpaces()
	for _, row := range l.rows {
		cells := make([]any, len(l.columns))
		for i, c := range l.columns {
			cells[i] = short(fmt.Sprint(c.cell(row)), c.width)
		}
		t.AppendRow(cells)
	}
	l.rows = l.rows[:0]
	_, err := fmt.Fprintln(l.w, t.Render())
	return err
}

// line prints one row of a live table. Its last column may be as wide as it likes.
func (l *listing[T]) line(row T) error {
	cells := make([]string, len(l.columns))
	for i, c := range l.columns {
		cells[i] = printable(fmt.Sprint(c.cell(row)))
		if c.width > 0 {
			cells[i] = fit(cells[i], c.width)
		}
	}
	_, err := fmt.Fprintln(l.w, strings.TrimRight(strings.Join(cells, "  "), " "))
	return err
}

// short returns printable s in at most width columns; 0: whole.
func short(s string, width int) string {
	if width == 0 {
		return printable(s)
	}
	if len(s) > 4*width { // what is cut anyway need not be looked at
		s = s[:4*width]
	}
	if s = printable(s); text.StringWidth(s) > width {
		return strings.TrimRight(fit(s, width), " ")
	}
	return s
}

// one prints a single thing: as people like to read it, or as JSON.
func (r *remote) one(v any, people func() error) error {
	switch r.format {
	case formatJSON:
		return writeJSON(r.out, v, "  ")
	case formatNDJSON:
		return writeJSON(r.out, v, "")
	}
	return people()
}

func writeJSON(w io.Writer, v any, indent string) error {
	b, err := encodeJSON(v, "", indent)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// encodeJSON returns v as JSON in which nothing is left that a terminal would obey.
func encodeJSON(v any, prefix, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, indent)
	if err := e.Encode(jsonForm(v)); err != nil {
		return nil, err
	}
	return escapeJSON(b.Bytes()), nil
}

// escapeJSON escapes what encoding/json leaves as it is: delete, C1 controls, text direction marks. They can stand only
// inside strings.
func escapeJSON(in []byte) []byte {
	out := make([]byte, 0, len(in))
	for len(in) > 0 {
		r, size := utf8.DecodeRune(in)
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = append(out, in[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		in = in[size:]
	}
	return out
}
