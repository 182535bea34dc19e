package kafka

import (
	"sync"

	"github.com/ferrymq/ferry/internal/envelope"
)

// scratch is memory for the bytes of some records until the brokers have answered for all of them. It is used again, so that a publish leaves little behind.
type scratch struct {
	lent   bool // it is released; otherwise every record has its own
	chunks []*[chunkBytes]byte
	free   []byte // of the last chunk
	pairs  []envelope.Pair
}

const chunkBytes = 128 << 10

var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// take is room for n bytes, which hold anything.
func (s *scratch) take(n int) []byte {
	if !s.lent || n > chunkBytes/8 {
		return make([]byte, n)
	}
	if n > len(s.free) {
		c := chunks.Get().(*[chunkBytes]byte)
		s.chunks, s.free = append(s.chunks, c), c[:]
	}
	room := s.free[:n:n]
	s.free = s.free[n:]
	return room
}

// release is called when nobody reads what was taken any more.
func (s *scratch) release() {
	if s == nil {
		return
	}
	for _, c := range s.chunks {
		chunks.Put(c)
	}
	s.chunks, s.free = nil, nil
}
