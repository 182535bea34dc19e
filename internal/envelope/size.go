package envelope

import (
	"time"

	"github.com/ferrymq/ferry/driver"
	"google.golang.org/protobuf/encoding/protowire"
)

// Size is how many bytes Append appends for m, for who has to know it before. The two have the same fields in the same
// order.
func Size(m *driver.Message) int {
	n := sizeUint(numVersion, Version)
	if isUUID(m.ID) {
		n += sizeBytes(numIDUUID, uuidSize)
	} else {
		n += sizeText(numID, m.ID)
	}
	n += sizeBool(numOwnID, m.OwnID)
	n += sizeText(numTopic, m.Topic)
	n += sizeText(numKey, m.Key)
	if code := contentTypeCode(m.ContentType); code != 0 {
		n += sizeUint(numContentTypeCode, code)
	} else {
		n += sizeText(numContentType, m.ContentType)
	}
	for name, value := range m.Headers {
		n += sizeBytes(numHeaders, sizeEntry(1, name)+sizeEntry(2, value))
	}
	n += sizeUint(numPriority, protowire.EncodeZigZag(int64(m.Priority)))
	n += sizeTime(numPublishedAt, m.PublishedAt)
	n += sizeInt(numDelay, int64(m.Delay))
	n += sizeInt(numTTL, int64(m.TTL))
	n += sizeText(numBody, m.Body)
	n += sizeTime(numAt, m.At)
	n += sizeText(numDedupID, m.DedupID)
	n += sizeInt(numDedupWindow, int64(m.DedupWindow))
	n += sizeInt(numMaxAttempts, int64(m.MaxAttempts))
	if m.Retry != nil {
		var room [64]byte // few policies need more
		n += sizeBytes(numRetry, len(appendRetry(room[:0], m.Retry)))
	}
	return n + crcSize
}

// sizeEntry is the size of one half of an entry of a map, which is there even if it is empty.
func sizeEntry(num protowire.Number, s string) int {
	return protowire.SizeTag(num) + protowire.SizeBytes(len(s))
}

func sizeUint(num protowire.Number, v uint64) int {
	if v == 0 {
		return 0
	}
	return protowire.SizeTag(num) + protowire.SizeVarint(v)
}

func sizeInt(num protowire.Number, v int64) int { return sizeUint(num, uint64(v)) }

func sizeBool(num protowire.Number, v bool) int { return sizeUint(num, protowire.EncodeBool(v)) }

func sizeTime(num protowire.Number, t time.Time) int {
	if t.IsZero() {
		return 0
	}
	return protowire.SizeTag(num) + protowire.SizeFixed64()
}

// sizeText is the size of a text that is left out if it is empty.
func sizeText[T string | []byte](num protowire.Number, v T) int {
	if len(v) == 0 {
		return 0
	}
	return sizeBytes(num, len(v))
}

func sizeBytes(num protowire.Number, n int) int {
	return protowire.SizeTag(num) + protowire.SizeBytes(n)
}
