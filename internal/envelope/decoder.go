package envelope

import "github.com/ferrymq/ferry/driver"

// Decode reads an envelope. The Body of the message is part of data, so data must stay unchanged as long as the
// message is used, and is the caller's own: copy it first where a store lends it. Everything else is copied.
func Decode(data []byte) (*driver.Message, error) {
	var d Decoder
	return d.Decode(data)
}

// Decoder decodes envelopes that come together. Messages share pieces of memory, as their bodies do if data is one
// piece, and a topic that repeats is in memory once.
type Decoder struct {
	// Coming is how many more messages are expected. It may be wrong, and is none at first.
	Coming int

	room  []driver.Message
	topic string
}

// decoderRoom is the most messages that there is memory for before they are decoded.
const decoderRoom = 64

// Decode reads an envelope, as the function does.
func (d *Decoder) Decode(data []byte) (*driver.Message, error) {
	content, err := unseal(data)
	if err != nil {
		return nil, err
	}
	m := d.next()
	for len(content) > 0 {
		var v value
		if v, content, err = messageFields.next(content); err != nil {
			return nil, err
		}
		if v.field == numTopic {
			m.Topic = d.repeated(v.data)
			continue
		}
		if err = setField(m, v); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// next returns memory for a message.
func (d *Decoder) next() *driver.Message {
	if len(d.room) == 0 {
		d.room = make([]driver.Message, max(1, min(d.Coming, decoderRoom)))
	}
	m := &d.room[0]
	d.room = d.room[1:]
	d.Coming--
	return m
}

func (d *Decoder) repeated(topic []byte) string {
	if string(topic) != d.topic {
		d.topic = string(topic)
	}
	return d.topic
}
