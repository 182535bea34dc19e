package engine

import (
	"errors"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// messageHead is what stands before the envelope of a stored message: where it was when it was stored.
type messageHead struct {
	state        entryState
	fan          uint64
	due, expires int64 // stamps
}

// head walks a head, whose state is at most one.
func (w *walk) head(h *messageHead, most entryState) {
	count(w, &h.state, uint64(most))
	w.uints(&h.fan)
	number(w, &h.due)
	number(w, &h.expires)
}

// appendHead appends a head to dst, which is empty, as it is stored: its length is first.
func appendHead(dst []byte, h messageHead) []byte {
	w := walk{data: append(dst, 0)}
	w.head(&h, invalid)
	w.data[0] = byte(len(w.data))
	return w.data
}

// splitMessage returns the head of a stored message, and its envelope, which is part of record: that even where the
// head is damaged.
func splitMessage(record []byte) (h messageHead, env []byte, err error) {
	if len(record) == 0 || int(record[0]) > len(record) || record[0] < 2 {
		return h, nil, errCutOff
	}
	w := &walk{reading: true, data: record[1:record[0]]}
	if w.head(&h, invalid); h.state == atRest {
		w.fail(errors.New("the message is in no state"))
	}
	return h, record[record[0]:], w.end()
}

// headOf returns the head of a message as it is now.
func headOf(e *entry, now moment) messageHead {
	h := messageHead{state: e.state, fan: e.fan, due: now.stamp(e.due), expires: now.stamp(e.expires())}
	if e.state == invalid || e.state == cold { // the record of its state says so; what is cold has none
		h.state = fanned
	}
	return h
}

// appendContent appends the envelope of a message, or its bytes if they were never decoded.
func (j *journal) appendContent(dst []byte, e *entry) []byte {
	if e.extra != nil && e.extra.raw != nil {
		return append(dst, e.extra.raw...)
	}
	j.message = driver.Message{}
	e.fill(&j.message, "", e)
	j.message.Body = e.body
	return envelope.Append(dst, &j.message)
}

// decodeMessage reads the envelope of a stored message and refuses what the indexes cannot hold.
func decodeMessage(env []byte, topic string) (*driver.Message, error) {
	m, err := envelope.Decode(env)
	if err != nil {
		return nil, err
	}
	if m.Topic = topic; m.ID == "" {
		return nil, errors.New("the message has no id")
	}
	if err := m.ValidateStored(); err != nil {
		return nil, fmt.Errorf("the stored message is not valid: %w", err)
	}
	return m, nil
}
