package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// printable returns s with everything escaped that a terminal would obey or that would make text look like another:
// control bytes, escape sequences, text direction marks, bytes that are not UTF-8.
func printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		s = s[size:]
	}
	return b.String()
}

// fit returns printable s in exactly width columns, cut or padded. A Chinese character has two columns.
func fit(s string, width int) string {
	s = printable(s)
	if text.StringWidth(s) > width {
		s = text.Trim(s, width-3) + "..." // an ellipsis is one column wide in some terminals, two in others
	}
	return text.Pad(s, width, ' ')
}
