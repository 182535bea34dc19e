package safehttp

import (
	"net/url"
	"strings"
)

// hidden stands where a secret was.
const hidden = "***"

// Redact is a URL for people: its scheme and host. Path and query may hold keys and tokens.
func Redact(u *url.URL) string {
	if u == nil || u.Host == "" {
		return hidden
	}
	return u.Scheme + "://" + u.Host + "/" + hidden
}

// leastSecret is how long a secret is at least: hiding shorter ones would make a text unreadable and tell them by its
// gaps.
const leastSecret = 4

// Hide replaces secrets in a text that somebody else wrote, such as an answer that repeats what it was sent.
func Hide(text string, secrets ...string) string {
	for _, s := range secrets {
		if len(s) < leastSecret {
			continue
		}
		text = strings.ReplaceAll(text, s, hidden)
		text = strings.ReplaceAll(text, url.QueryEscape(s), hidden)
	}
	return text
}
