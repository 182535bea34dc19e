package registry

import (
	"encoding/binary"
	"fmt"
)

// headerLen is the length of the Confluent header: a zero byte, then the id of the schema in four bytes, big endian.
const headerLen = 5

// AppendHeader appends the Confluent header of a schema id.
func AppendHeader(dst []byte, id int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, 0), uint32(id))
}

// Split returns the schema id in the header of a body, and what follows the header.
func Split(body []byte) (id int, rest []byte, err error) {
	switch {
	case len(body) < headerLen:
		return 0, nil, fmt.Errorf("registry: %d bytes are too few for a header of %d: let the producer write the Confluent "+
			"wire format", len(body), headerLen)
	case body[0] != 0:
		return 0, nil, fmt.Errorf("registry: the first byte is %#02x, not 0: "+
			"let the producer write the Confluent wire format", body[0])
	}
	return int(binary.BigEndian.Uint32(body[1:headerLen])), body[headerLen:], nil
}
