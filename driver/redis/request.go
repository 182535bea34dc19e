package redis

import (
	"strconv"
	"sync"
)

// requests names requests, so that a script can tell one that is repeated. A name is a slot and a number; one slot
// serves one request at a time, so that the server has to remember only the last answer of each.
type requests struct {
	nonce string // of this process

	mu   sync.Mutex
	made int
	free []*request
}

// request is one slot, with the number of its present request.
type request struct {
	slot   string
	number uint64
}

// take begins a request.
func (rs *requests) take() *request {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var r *request
	if n := len(rs.free); n > 0 {
		r, rs.free = rs.free[n-1], rs.free[:n-1]
	} else {
		r = &request{slot: rs.nonce + strconv.FormatInt(int64(rs.made), 36)}
		rs.made++
	}
	r.number++
	return r
}

// giveBack ends a request, whatever became of it.
func (rs *requests) giveBack(r *request) {
	rs.mu.Lock()
	rs.free = append(rs.free, r)
	rs.mu.Unlock()
}

func (r *request) name() string { return r.slot + ":" + strconv.FormatUint(r.number, 36) }
