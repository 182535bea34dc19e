package envelope

import (
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
	"google.golang.org/protobuf/encoding/protowire"
)

// Append appends the envelope of m to dst and returns it. Fields with their zero value are left out.
func Append(dst []byte, m *driver.Message) []byte {
	const plain = 64 // more than a message without headers or overrides needs beside its texts
	dst = slices.Grow(dst, plain+len(m.ID)+len(m.Topic)+len(m.Key)+len(m.ContentType)+len(m.Body))
	start := len(dst)
	dst = appendVersion(dst)
	if id, ok := ParseUUID(m.ID); ok {
		dst = appendText(dst, numIDUUID, id[:])
	} else {
		dst = appendText(dst, numID, m.ID)
	}
	dst = appendBool(dst, numOwnID, m.OwnID)
	dst = appendText(dst, numTopic, m.Topic)
	dst = appendText(dst, numKey, m.Key)
	if code := contentTypeCode(m.ContentType); code != 0 {
		dst = appendUint(dst, numContentTypeCode, code)
	} else {
		dst = appendText(dst, numContentType, m.ContentType)
	}
	dst = appendHeaders(dst, m.Headers)
	dst = appendUint(dst, numPriority, protowire.EncodeZigZag(int64(m.Priority)))
	dst = appendTime(dst, numPublishedAt, m.PublishedAt)
	dst = appendInt(dst, numDelay, int64(m.Delay))
	dst = appendInt(dst, numTTL, int64(m.TTL))
	dst = appendText(dst, numBody, m.Body)
	dst = appendTime(dst, numAt, m.At)
	dst = appendText(dst, numDedupID, m.DedupID)
	dst = appendInt(dst, numDedupWindow, int64(m.DedupWindow))
	dst = appendInt(dst, numMaxAttempts, int64(m.MaxAttempts))
	if m.Retry != nil {
		at := len(dst)
		dst = nest(appendRetry(dst, m.Retry), at, numRetry)
	}
	return seal(dst, start)
}

func appendHeaders(dst []byte, headers map[string]string) []byte {
	if len(headers) == 0 {
		return dst
	}
	var room [16]string
	for _, name := range sortedNames(room[:0], headers) {
		at := len(dst)
		// Both, even if empty: so do the protobuf libraries in an entry of a map.
		dst = protowire.AppendString(protowire.AppendTag(dst, 1, protowire.BytesType), name)
		dst = protowire.AppendString(protowire.AppendTag(dst, 2, protowire.BytesType), headers[name])
		dst = nest(dst, at, numHeaders)
	}
	return dst
}

func sortedNames(names []string, headers map[string]string) []string {
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func appendRetry(dst []byte, p *driver.RetryPolicy) []byte {
	if len(p.Delays) > 0 {
		at := len(dst)
		for _, d := range p.Delays {
			dst = protowire.AppendVarint(dst, uint64(d))
		}
		dst = nest(dst, at, numDelays)
	}
	dst = appendInt(dst, numBase, int64(p.Base))
	dst = appendDouble(dst, numFactor, p.Factor)
	dst = appendInt(dst, numCap, int64(p.Cap))
	dst = appendBool(dst, numNoJitter, p.NoJitter)
	return appendInt(dst, numMaxElapsed, int64(p.MaxElapsed))
}

func setField(m *driver.Message, v value) (err error) {
	switch v.field {
	case numIDUUID:
		if len(v.data) != uuidSize {
			return damaged(fmt.Sprintf("id_uuid has %d bytes", len(v.data)), nil)
		}
		m.ID = FormatUUID(v.data)
	case numID:
		m.ID = v.text()
	case numOwnID:
		m.OwnID = v.bool()
	case numTopic:
		m.Topic = v.text()
	case numKey:
		m.Key = v.text()
	case numContentTypeCode:
		if v.num == 0 || v.num >= uint64(len(contentTypes)) {
			return damaged(fmt.Sprintf("content type number %d is not known", v.num), nil)
		}
		m.ContentType = contentTypes[v.num]
	case numContentType:
		m.ContentType = contentTypeText(v.data)
	case numHeaders:
		return setHeader(m, v.data)
	case numPriority:
		m.Priority, err = priority(protowire.DecodeZigZag(v.num))
	case numPublishedAt:
		m.PublishedAt = v.time()
	case numBody:
		m.Body = v.data[:len(v.data):len(v.data)] // so that appending to it does not write into data
	default:
		return setOption(m, v)
	}
	return err
}

// setOption reads what few messages have.
func setOption(m *driver.Message, v value) (err error) {
	switch v.field {
	case numDelay:
		m.Delay = v.wait()
	case numTTL:
		m.TTL = v.wait()
	case numAt:
		m.At = v.time()
	case numDedupID:
		m.DedupID = v.text()
	case numDedupWindow:
		m.DedupWindow = v.wait()
	case numMaxAttempts:
		m.MaxAttempts, err = v.number()
	case numRetry:
		if m.Retry == nil {
			m.Retry = new(driver.RetryPolicy)
		}
		err = setRetry(m.Retry, v.data)
	}
	return err
}

// priority refuses what no driver could find a lane for.
func priority(n int64) (driver.Priority, error) {
	p := driver.Priority(n)
	if int64(p) != n || !p.Valid() {
		return 0, damaged(fmt.Sprintf("priority %d does not exist", n), nil)
	}
	return p, nil
}

func setHeader(m *driver.Message, data []byte) error {
	var name, text string
	err := headerFields.each(data, func(v value) error {
		if v.field == 1 {
			name = v.text()
		} else {
			text = v.text()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if m.Headers == nil {
		m.Headers = make(map[string]string)
	}
	m.Headers[name] = text
	return nil
}

func setRetry(p *driver.RetryPolicy, data []byte) error {
	return retryFields.each(data, func(v value) error {
		switch v.field {
		case numDelays:
			return setDelays(p, v)
		case numBase:
			p.Base = v.wait()
		case numFactor:
			p.Factor = v.double()
		case numCap:
			p.Cap = v.wait()
		case numNoJitter:
			p.NoJitter = v.bool()
		case numMaxElapsed:
			p.MaxElapsed = v.wait()
		}
		return nil
	})
}

// setDelays takes the packed form, which Append writes, and single numbers, which other writers may.
func setDelays(p *driver.RetryPolicy, v value) error {
	if v.data == nil {
		p.Delays = append(p.Delays, v.wait())
		return nil
	}
	for rest := v.data; len(rest) > 0; {
		d, n := protowire.ConsumeVarint(rest)
		if n < 0 {
			return damaged("a retry delay is cut off", protowire.ParseError(n))
		}
		p.Delays = append(p.Delays, time.Duration(d))
		rest = rest[n:]
	}
	return nil
}
