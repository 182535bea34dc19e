package deadletter

import (
	"context"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Edit changes a message on its way out of the letters. It gets a copy; the letter itself stays as it is. Topic and ID
// cannot be changed. Of a parse error the message is empty but for its body, which is what was found.
type Edit func(l Letter, m *ferry.Message) error

// Edits applies several in order.
func Edits(all ...Edit) Edit {
	return func(l Letter, m *driver.Message) error {
		for _, e := range all {
			if e == nil {
				continue
			}
			if err := e(l, m); err != nil {
				return err
			}
		}
		return nil
	}
}

// SetBody replaces the body. An empty content type keeps that of the message.
func SetBody(body []byte, contentType string) Edit {
	return func(_ Letter, m *driver.Message) error {
		m.Body = append([]byte(nil), body...)
		if contentType != "" {
			m.ContentType = contentType
		}
		return nil
	}
}

// SetHeader sets a header.
func SetHeader(name, value string) Edit {
	return func(_ Letter, m *driver.Message) error {
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		m.Headers[name] = value
		return nil
	}
}

// RemoveHeader takes a header away.
func RemoveHeader(name string) Edit {
	return func(_ Letter, m *driver.Message) error {
		delete(m.Headers, name)
		return nil
	}
}

// PatchBody applies a JSON patch to the body. A letter that it does not apply to stays where it is.
func PatchBody(p Patch) Edit {
	return func(_ Letter, m *driver.Message) (err error) {
		m.Body, err = p.Apply(m.Body)
		return err
	}
}

// KeepBody publishes what could not be decoded with the bytes that were found as its body.
func KeepBody() Edit { return func(Letter, *driver.Message) error { return nil } }

// edited returns the message of a letter after an edit, or nil if there is none.
func (q *Queue) edited(ctx context.Context, l Letter, edit Edit, topic string) (*driver.Message, error) {
	m := &driver.Message{Body: append([]byte(nil), l.Raw...)}
	if l.Message != nil {
		// again, for one that could not be shown: it cannot be edited, nor get another id
		plain, err := q.broker.UndoFilters(ctx, l.Message)
		if err != nil {
			return nil, err
		}
		m = plain.Clone()
	}
	id := m.ID
	if edit != nil {
		if err := edit(l, m); err != nil {
			return nil, err
		}
	}
	m.ID, m.Topic = id, topic
	m.Delay, m.TTL = 0, max(0, m.TTL)
	checked := *m
	checked.At, checked.TTL, checked.DedupID, checked.DedupWindow = m.PublishedAt, 0, "", 0 // those of long ago
	return m, checked.Validate(q.maxBody)
}
