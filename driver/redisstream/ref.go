package redisstream

import (
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// ref is the place of a stream entry: its id in two numbers. What is not in the stream has none.
func (p *partition) ref(id string) driver.Ref {
	ms, seq, ok := strings.Cut(id, "-")
	pos, err1 := strconv.ParseUint(ms, 10, 64)
	sub, err2 := strconv.ParseUint(seq, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return driver.Ref{}
	}
	return driver.Ref{Partition: int32(p.index), Pos: pos, Sub: sub}
}

// streamID undoes ref.
func streamID(r driver.Ref) string {
	return strconv.FormatUint(r.Pos, 10) + "-" + strconv.FormatUint(r.Sub, 10)
}
