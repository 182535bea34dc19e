package redisconn

import (
	"fmt"
	"strconv"
	"unsafe"

	"github.com/ferrymq/ferry/driver"
)

// Reply is what a script answered. What it lacks, or has as something else, reads as nothing: the caller checks what it
// relies on.
type Reply []any

// ReplyOf returns a list as the client library gives it.
func ReplyOf(v any) Reply {
	l, _ := v.([]any)
	return l
}

// Text returns one element.
func (r Reply) Text(i int) string {
	if i < len(r) {
		s, _ := r[i].(string)
		return s
	}
	return ""
}

// Bytes returns the bytes of a text without copying them. The client library has made the text for us alone, so that a
// message in it may be handed out for good. That is 1.4 kB instead of 1.7 for each message of 256 bytes
// (BenchmarkDriver/drain of driver/redis).
func Bytes(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// Number returns one element that the script gave as the text of a number.
func (r Reply) Number(i int) int64 {
	n, _ := strconv.ParseInt(r.Text(i), 10, 64)
	return n
}

// List returns one element that is a list.
func (r Reply) List(i int) Reply {
	if i < len(r) {
		return ReplyOf(r[i])
	}
	return nil
}

// Texts returns one element that is a list of texts; what is missing in it is "".
func (r Reply) Texts(i int) []string {
	l := r.List(i)
	out := make([]string, len(l))
	for j := range l {
		out[j] = l.Text(j)
	}
	return out
}

// Map returns a flat list of names and values as a map.
func (r Reply) Map() map[string]string {
	m := make(map[string]string, len(r)/2)
	for i := 0; i+1 < len(r); i += 2 {
		m[r.Text(i)] = r.Text(i + 1)
	}
	return m
}

// ErrShape says that a reply is not what the script gives.
func (r Reply) ErrShape(what string) error {
	return driver.NewError(driver.ErrUnknown,
		fmt.Sprintf("the server's answer to %s makes no sense: %.200v", what, []any(r)),
		"look for a proxy in between, another program on this connection, or another version of our scripts on the server",
		nil)
}

// Flag is a truth as scripts are given it.
func Flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
