package main

import (
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain, 世界 é ✓":         "plain, 世界 é ✓",
		"\x1b[31mred\x1b[0m":    `\x1b[31mred\x1b[0m`,
		"a\nb\tc\rd\x00":        `a\nb\tc\rd\x00`,
		"bell\a del\x7f":        `bell\a del\x7f`,
		"c1 \u009b31m":          `c1 \u009b31m`,
		"right to left \u202e!": `right to left \u202e!`,
		"not UTF-8 \xff\xef.":   `not UTF-8 \xff\xef.`,
		"real \ufffd":           "real \ufffd",
		`back\slash 'quote'`:    `back\slash 'quote'`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFitCountsColumns(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":             "        ",
		"orders":       "orders  ",
		"exactly8":     "exactly8",
		"longer than8": "longe...",
		"订单":           "订单    ",
		"订单消息":         "订单消息",
		"订单消息队列":       "订单... ",
		"a订单消息队列":      "a订单...",
		"\x1b[31m":     `\x1b[31m`,
	} {
		got := fit(in, 8)
		if got != want || text.StringWidth(got) != 8 {
			t.Errorf("fit(%q, 8) = %q with %d columns, want %q", in, got, text.StringWidth(got), want)
		}
	}
}
