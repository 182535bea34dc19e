package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/ferrymq/ferry/internal/jsontime"
)

// appendDelivery appends a delivery in JSON, as encoding/json writes it without escapes for HTML: every delivery of a
// stream passes through here, and reflection would cost more than the rest of its way. A test holds the two together.
func appendDelivery(dst []byte, d *delivery) []byte {
	dst = appendText(append(dst, `{"lease":`...), d.Lease)
	dst = appendText(append(dst, `,"lease_for":`...), d.LeaseFor.String())
	dst = strconv.AppendInt(append(dst, `,"attempt":`...), int64(d.Attempt), 10)
	dst = strconv.AppendInt(append(dst, `,"deliveries":`...), int64(d.Deliveries), 10)
	dst = appendText(append(dst, `,"cause":`...), d.Cause)
	dst = appendText(append(dst, `,"id":`...), d.ID)
	dst = appendText(append(dst, `,"topic":`...), d.Topic)
	dst = appendText(append(dst, `,"group":`...), d.Group)
	if d.Key != "" {
		dst = appendText(append(dst, `,"key":`...), d.Key)
	}
	dst = appendBody(dst, d)
	if d.ContentType != "" {
		dst = appendText(append(dst, `,"content_type":`...), d.ContentType)
	}
	if len(d.Headers) > 0 {
		dst = appendHeaders(append(dst, `,"headers":`...), d.Headers)
	}
	if d.PublishedAt != nil {
		dst = d.PublishedAt.UTC().AppendFormat(append(dst, `,"published_at":"`...), jsontime.Layout)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

// appendBody appends the one field of three that a body is in. An empty one of bytes is left out.
func appendBody(dst []byte, d *delivery) []byte {
	switch {
	case len(d.JSON) > 0:
		return append(append(dst, `,"json":`...), d.JSON...)
	case d.Body != nil:
		return appendText(append(dst, `,"body":`...), *d.Body)
	case len(d.BodyBase64) > 0:
		dst = base64.StdEncoding.AppendEncode(append(dst, `,"body_base64":"`...), d.BodyBase64)
		return append(dst, '"')
	}
	return dst
}

// appendHeaders appends headers in the order of their names.
func appendHeaders(dst []byte, headers map[string]string) []byte {
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		dst = append(dst, "{,"[min(i, 1)])
		dst = append(appendText(dst, name), ':')
		dst = appendText(dst, headers[name])
	}
	return append(dst, '}')
}

// appendText appends a text in quotes. What is no UTF-8 becomes the character for that.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0 // of what is appended as it is
	for i := 0; i < len(s); {
		c, size := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(s[i:])
		}
		if mustEscape(c, size) {
			dst = appendEscaped(append(dst, s[from:i]...), c)
			from = i + size
		}
		i += size
	}
	return append(append(dst, s[from:]...), '"')
}

// mustEscape reports whether a character cannot stand in a text as it is: JSON forbids some, and JavaScript two more.
func mustEscape(c rune, size int) bool {
	return c < ' ' || c == '"' || c == '\\' || c == utf8.RuneError && size == 1 || c == '\u2028' || c == '\u2029'
}

// escapes are those of one letter.
var escapes = map[rune]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

func appendEscaped(dst []byte, c rune) []byte {
	if letter, short := escapes[c]; short {
		return append(dst, '\\', letter)
	}
	return fmt.Appendf(dst, `\u%04x`, c)
}

// appendReceived appends the answer to a receive: encoding/json writes what is around the deliveries.
func appendReceived(dst []byte, r received) []byte {
	const begin = `{"messages":[`
	// nothing in it can fail
	around, _ := json.Marshal(received{Messages: []delivery{}, Settled: r.Settled, Error: r.Error})
	dst = append(dst, begin...)
	for i := range r.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendDelivery(dst, &r.Messages[i])
	}
	return append(append(dst, around[len(begin):]...), '\n')
}

// receiptRoom is about how many bytes a receipt has.
const receiptRoom = 64

// appendReceipts appends the answer to a publish of many, as encoding/json writes it: that is asked only for what was
// not stored.
func appendReceipts(dst []byte, all []receipt) []byte {
	dst = append(dst, `{"receipts":[`...)
	for i := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendReceipt(dst, &all[i])
	}
	return append(dst, "]}\n"...)
}

func appendReceipt(dst []byte, r *receipt) []byte {
	if r.Error != nil || r.ID == "" {
		buffer := bytes.NewBuffer(dst)
		e := json.NewEncoder(buffer)
		e.SetEscapeHTML(false)
		_ = e.Encode(r) // nothing in it can fail
		return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
	}
	dst = appendText(append(dst, `{"id":`...), r.ID)
	if r.Duplicate {
		dst = append(dst, `,"duplicate":true`...)
	}
	if r.IDWindow != 0 {
		dst = appendText(append(dst, `,"id_window":`...), r.IDWindow.String())
	}
	return append(dst, '}')
}
