package notify

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// split cuts a body into parts of at most limit bytes, between lines where that is possible and never inside a rune.
// Zero is no limit.
func split(body string, limit int) []string {
	if limit <= 0 || len(body) <= limit {
		return []string{body}
	}
	var parts []string
	for len(body) > limit {
		at := cut(body, limit)
		parts = append(parts, strings.TrimRight(body[:at], "\n"))
		body = strings.TrimLeft(body[at:], "\n")
	}
	if body != "" {
		parts = append(parts, body)
	}
	return parts
}

// cut is where a part of at most limit bytes ends: after the last line break in its second half, or else after a rune.
func cut(body string, limit int) int {
	if at := strings.LastIndexByte(body[:limit], '\n'); at >= limit/2 {
		return at + 1
	}
	at := limit
	for at > 0 && !utf8.RuneStart(body[at]) {
		at--
	}
	if at == 0 { // a limit smaller than one rune: never cut inside it
		_, at = utf8.DecodeRuneInString(body)
	}
	return at
}

// shape fits a body to a channel: its format, and its parts. One that is too long and cannot be split is refused.
func (l Limits) shape(body string, format Format) (parts []string, shown Format, err error) {
	shown = format
	if len(l.Formats) > 0 && !slices.Contains(l.Formats, format) {
		if format == HTML {
			body = Plain(body)
		}
		shown = Text
	}
	limit := l.MaxBytes[shown]
	if limit > 0 && len(body) > limit && !slices.Contains(l.Split, shown) {
		return nil, "", &Error{Code: CodeInvalidMessage, Hint: "shorten it, or send a link",
			Text: "the body is longer than the channel takes, and cannot be split"}
	}
	return split(body, limit), shown, nil
}
