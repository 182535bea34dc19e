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

// leastSegment is how long a segment of a path is at least that may be a key: shorter ones are words like "services".
const leastSegment = 16

// Secrets are what Redact leaves out of a URL, whole and in pieces, for Hide: a server may repeat any of them.
func Secrets(u *url.URL) []string {
	found := []string{u.String(), u.RequestURI(), strings.TrimPrefix(u.RequestURI(), "/"), u.RawQuery}
	for _, values := range u.Query() {
		found = append(found, values...)
	}
	for _, text := range []string{u.EscapedPath(), u.Path} {
		if len(text) >= leastSegment {
			found = append(found, text)
		}
		for segment := range strings.SplitSeq(text, "/") {
			if len(segment) >= leastSegment {
				found = append(found, segment)
			}
		}
	}
	return found
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
