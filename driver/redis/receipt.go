package redis

import (
	"math"
	"strconv"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// receipts reads what became of each message.
func (p *publication) receipts(x *shardPublish, reply redisconn.Reply) error {
	switch reply.Text(0) {
	case "ok":
		first, err := strconv.ParseUint(reply.Text(1), 10, 64)
		if err != nil {
			return reply.ErrShape("publish")
		}
		for n, i := range x.at {
			p.Receipts[i] = driver.Receipt{ID: p.Messages[i].ID, Ref: x.shard.ref(first + uint64(n))}
		}
		return nil
	case "mixed":
		list := reply.Texts(1)
		if len(list) != len(x.at) {
			return reply.ErrShape("publish")
		}
		for n, i := range x.at {
			p.Receipts[i] = redisshell.Receipt(p.Messages[i], list[n], x.shard.place)
			p.Receipts[i].ID = unindexID(p.Receipts[i].ID)
		}
		return nil
	case "missing":
		return driver.NewError(driver.ErrNotFound, "the entry is not there any more",
			"it was deleted or published meanwhile", nil)
	}
	return reply.ErrShape("publish")
}

// unindexID undoes indexID.
func unindexID(s string) string {
	if len(s) != 17 || s[0] != 0 {
		return s
	}
	return envelope.FormatUUID([]byte(s[1:]))
}

func (s *shard) ref(seq uint64) driver.Ref {
	return driver.Ref{Partition: int32(s.index), Pos: min(seq, math.MaxInt64)}
}

// place is where a message is, of which a script told the sequence number.
func (s *shard) place(seq string) driver.Ref {
	n, _ := strconv.ParseUint(seq, 10, 64)
	return s.ref(n)
}
