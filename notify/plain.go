package notify

import (
	"html"
	"regexp"
	"strings"
)

var (
	unseen    = regexp.MustCompile(`(?is)<(script|style|head)\b.*?</(script|style|head)>`)
	lineEnds  = regexp.MustCompile(`(?i)<br\s*/?>|</(p|div|tr|li|h[1-6])\s*>`)
	tags      = regexp.MustCompile(`(?s)<[^>]*>`)
	emptyRows = regexp.MustCompile(`\n{3,}`)
)

// Plain is the text of an HTML body, for what shows no HTML.
func Plain(body string) string {
	body = unseen.ReplaceAllString(body, "")
	body = lineEnds.ReplaceAllString(body, "\n")
	body = html.UnescapeString(tags.ReplaceAllString(body, ""))
	return strings.TrimSpace(emptyRows.ReplaceAllString(body, "\n\n"))
}
