package value

import (
	"errors"
	"fmt"
)

// MaxDepth is how deep arrays and maps may be nested.
const MaxDepth = 128

// Check looks through data before anything is made of it: it is one value, no deeper than MaxDepth, and has no more of
// anything than there are bytes for. A decoder that trusts its headers makes room for as many as they say, which is 64
// MiB for some six bytes.
func Check(data []byte) error {
	s := scanner{data}
	if err := s.value(0); err != nil {
		return err
	}
	if len(s.left) > 0 {
		return fmt.Errorf("%d bytes follow the value", len(s.left))
	}
	return nil
}

type scanner struct{ left []byte }

var errTruncated = errors.New("the value is truncated")

// form is what follows the first byte of a value: so many bytes of a length, so many other bytes, and what the length
// counts.
type form struct {
	length, bytes int
	counts        counted
}

type counted int

const (
	nothing counted = iota
	ofBytes
	ofValues
	ofPairs
	reserved
)

// forms of the first bytes from 0xc0 to 0xdf.
var forms = [32]form{
	0x01: {0, 0, reserved},
	0x04: {1, 0, ofBytes}, 0x05: {2, 0, ofBytes}, 0x06: {4, 0, ofBytes}, // bin
	0x07: {1, 1, ofBytes}, 0x08: {2, 1, ofBytes}, 0x09: {4, 1, ofBytes}, // ext
	0x0a: {0, 4, nothing}, 0x0b: {0, 8, nothing}, // float
	0x0c: {0, 1, nothing}, 0x0d: {0, 2, nothing}, 0x0e: {0, 4, nothing}, 0x0f: {0, 8, nothing}, // uint
	0x10: {0, 1, nothing}, 0x11: {0, 2, nothing}, 0x12: {0, 4, nothing}, 0x13: {0, 8, nothing}, // int
	// fixext
	0x14: {0, 2, nothing}, 0x15: {0, 3, nothing}, 0x16: {0, 5, nothing}, 0x17: {0, 9, nothing}, 0x18: {0, 17, nothing},
	0x19: {1, 0, ofBytes}, 0x1a: {2, 0, ofBytes}, 0x1b: {4, 0, ofBytes}, // str
	0x1c: {2, 0, ofValues}, 0x1d: {4, 0, ofValues},
	0x1e: {2, 0, ofPairs}, 0x1f: {4, 0, ofPairs},
}

func (s *scanner) value(depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("it is deeper than %d", MaxDepth)
	}
	first, err := s.number(1)
	switch {
	case err != nil:
		return err
	case first <= 0x7f || first >= 0xe0:
		return nil
	case first <= 0x8f:
		return s.values(2*(first&0x0f), depth)
	case first <= 0x9f:
		return s.values(first&0x0f, depth)
	case first <= 0xbf:
		return s.skip(first & 0x1f)
	}
	f := forms[first-0xc0]
	n, err := s.number(f.length)
	if err != nil {
		return err
	}
	switch f.counts {
	case ofValues:
		return s.values(n, depth)
	case ofPairs:
		return s.values(2*n, depth)
	case reserved:
		return fmt.Errorf("byte %#x begins no value", first)
	}
	return s.skip(f.bytes + n)
}

// values scans n values inside an array or a map.
func (s *scanner) values(n, depth int) error {
	if n > len(s.left) {
		return errTruncated
	}
	for range n {
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// number reads n bytes, at most 4, big endian.
func (s *scanner) number(n int) (v int, err error) {
	if n > len(s.left) {
		return 0, errTruncated
	}
	for _, b := range s.left[:n] {
		v = v<<8 | int(b)
	}
	s.left = s.left[n:]
	return v, nil
}

func (s *scanner) skip(n int) error {
	if n > len(s.left) {
		return errTruncated
	}
	s.left = s.left[n:]
	return nil
}
