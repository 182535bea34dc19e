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

// active is where markdown, or a vendor's dialect of it, does something beyond emphasis: links and images, tags, and
// mentions of people.
var active = regexp.MustCompile(`(\])(\()|(<)([A-Za-z/!@])`)

// Literal is text that shows as it is in markdown: a zero-width space ends what would be a link, a tag or a mention.
func Literal(text string) string { return active.ReplaceAllString(text, "$1$3\u200b$2$4") }
