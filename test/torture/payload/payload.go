// Package payload makes bodies that can be checked without knowing what was sent: each carries its own description.
package payload

import (
	"bytes"
	"encoding/hex"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
)

// Make returns the body of one message: its sequence within its key, then random bytes, which no store can compress
// away.
func Make(seq int64, size int, random *rand.Rand) []byte {
	body := append(strconv.AppendInt(nil, seq, 10), '|')
	for len(body) < size {
		n := random.Uint64()
		body = append(body, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48), byte(n>>56))
	}
	return body
}

// Seq returns the sequence that a body carries, -1 when it carries none.
func Seq(body []byte) int64 {
	digits, _, found := bytes.Cut(body, []byte("|"))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if !found || err != nil {
		return -1
	}
	return n
}

// Hash identifies a body in histories.
func Hash(body []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
