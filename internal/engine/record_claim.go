package engine

import (
	"encoding/binary"
	"fmt"
)

// receipt is the stored record of what one Receive claimed. It is removed with the last of its claims; what is found
// when the store is opened was in flight when the process ended.
type receipt struct {
	number uint64 // of its first claim; the others count down
	left   int    // claims that are not over
}

// appendReceipt appends the record of claims, in the order of their numbers, the highest first.
func appendReceipt(dst []byte, group uint32, picked []*item) []byte {
	start := len(dst)
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, uint64(group))
	for _, it := range picked {
		dst = binary.AppendUvarint(dst, it.e.seq)
	}
	return seal(dst, start)
}

// decodeReceipt reads what appendReceipt wrote.
func decodeReceipt(record []byte) (group uint32, seqs []uint64, err error) {
	r := unseal(record)
	group = r.uint32()
	for len(r.rest) > 0 && r.err == nil {
		seqs = append(seqs, r.uint())
	}
	if err := r.end(); err != nil {
		return 0, nil, fmt.Errorf("claims: %w", err)
	}
	return group, seqs, nil
}

// known is a stored dedup id, or an id of a producer's own.
type known struct {
	message string // the id of the first message
	seq     uint64
	until   int64 // stamp
}

func appendKnown(dst []byte, k known) []byte {
	start := len(dst)
	dst = append(dst, recordVersion)
	dst = appendBytes(dst, k.message)
	dst = binary.AppendUvarint(dst, k.seq)
	dst = binary.AppendVarint(dst, k.until)
	return seal(dst, start)
}

func decodeKnown(record []byte) (known, error) {
	r := unseal(record)
	k := known{message: r.text(), seq: r.uint(), until: r.int()}
	if err := r.end(); err != nil {
		return known{}, fmt.Errorf("a remembered id: %w", err)
	}
	return k, nil
}
