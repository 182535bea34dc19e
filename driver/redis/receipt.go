package redis

import (
	"math"
	"strconv"
	"strings"

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
			p.rs[i] = driver.Receipt{ID: p.msgs[i].ID, Ref: x.shard.ref(first + uint64(n))}
		}
		return nil
	case "mixed":
		list := reply.Texts(1)
		if len(list) != len(x.at) {
			return reply.ErrShape("publish")
		}
		for n, i := range x.at {
			p.rs[i] = p.receipt(x, p.msgs[i].ID, list[n])
		}
		return nil
	case "missing":
		return driver.NewError(driver.ErrNotFound, "the entry is not there any more",
			"it was deleted or published meanwhile", nil)
	}
	return reply.ErrShape("publish")
}

func (p *publication) receipt(x *shardPublish, id, what string) driver.Receipt {
	r := driver.Receipt{ID: id}
	seq, first, _ := strings.Cut(what[1:], " ")
	switch n, _ := strconv.ParseUint(seq, 10, 64); what[0] {
	case 's':
		r.Ref = x.shard.ref(n)
	case 'd':
		r.Ref, r.Duplicate = x.shard.ref(n), true
		if first != "" {
			r.ID = unindexID(first)
		}
	case 'm', 'b':
		r.Err = redisshell.ErrBound(x.topic.name)
	default:
		r.Err = redisconn.Reply{what}.ErrShape("publish")
	}
	return r
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
