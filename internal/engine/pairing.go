package engine

import "fmt"

// pairing reads messages, each with the record of its state if there is one: that comes right behind it.
type pairing struct {
	topic string
	now   moment
	// use gets each message, with nil instead of a state without a record.
	use func(f *found, s *storedState)
	// wrong is told which record has which problem, and says why nothing more is read, or nil.
	wrong func(record, problem string, cause error) error

	last  *found // its state may follow
	state storedState
}

// read reads the messages between two keys.
func (p *pairing) read(s Records, from, to []byte) error {
	err := s.Scan(from, to, p.record)
	if err == nil {
		p.pass(nil)
	}
	return err
}

func (p *pairing) record(key, value []byte) error {
	seq, state, ok := numberOf(key)
	switch {
	case !ok:
		return p.wrong(fmt.Sprintf("key %x", key), "is not one of this program", nil)
	case !state:
		p.pass(nil)
		f := readFound(p.topic, seq, value)
		p.last = &f
		return nil
	}
	if err := p.state.read(value, p.now); err != nil {
		return p.wrong(fmt.Sprintf("the state of message 0-%d", seq), "is damaged", err)
	}
	if p.last == nil || p.last.seq != seq {
		return p.wrong(fmt.Sprintf("message 0-%d", seq), "has a state, but is not there", nil)
	}
	p.pass(&p.state)
	return nil
}

// pass passes the last message on, if it was not, with its state, or nil if none follows.
func (p *pairing) pass(s *storedState) {
	if f := p.last; f != nil {
		p.last = nil
		p.use(f, s)
	}
}
