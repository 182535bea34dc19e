package kafka

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// tally is what an owner counts in a partition. It is committed beside the offset, so that others need not read the messages.
type tally struct {
	Ready, Inflight, Waiting                        uint64 // fetched, or in the side log
	Next                                            int64  // of the main topic: what is beyond is ready
	Side                                            int64  // of the side log: what is beyond is not counted
	Acked, Dropped, Expired, Cancelled, Redelivered uint64
	Retried, Died                                   uint64
}

// tallyPart begins a tally in the metadata.
const tallyPart = 'N'

// current is the tally of an owned partition now.
func (p *partition) current() tally {
	t := p.tally
	t.Ready, t.Inflight, t.Waiting = 0, 0, 0
	for it := range p.items.all() {
		switch it.state {
		case ready:
			t.Ready++
		case inflight:
			t.Inflight++
		case waiting:
			t.Waiting++
		case aside: // for the next owner it is what it was
			if it.due.IsZero() {
				t.Ready++
			} else {
				t.Waiting++
			}
		}
	}
	t.Ready += uint64(len(p.pending))
	t.Next = p.done.next
	return t
}

func (t tally) String() string {
	var buf []byte
	for _, n := range []uint64{t.Ready, t.Inflight, t.Waiting, uint64(t.Next), uint64(t.Side), t.Acked, t.Dropped, t.Expired, t.Cancelled, t.Redelivered,
		t.Retried, t.Died} {
		buf = binary.AppendUvarint(buf, n)
	}
	return string(tallyPart) + base64.RawStdEncoding.EncodeToString(buf) + ";"
}

// readTally finds the tally in the metadata of a commit. Without one everything beyond the offset is ready.
func readTally(metadata string, at int64) tally {
	t := tally{Next: max(0, at)}
	_, rest, found := strings.Cut(metadata, string(tallyPart))
	part, _, ended := strings.Cut(rest, ";")
	if !found || !ended || metadata[0] != tallyPart {
		return t
	}
	buf, err := base64.RawStdEncoding.DecodeString(part)
	if err != nil {
		return t
	}
	var ns [12]uint64
	for i := range ns {
		if len(buf) == 0 && i == 10 { // written before there were more
			break
		}
		n, size := binary.Uvarint(buf)
		if size <= 0 {
			return t
		}
		ns[i], buf = n, buf[size:]
	}
	return tally{Ready: ns[0], Inflight: ns[1], Waiting: ns[2], Next: int64(ns[3]), Side: int64(ns[4]),
		Acked: ns[5], Dropped: ns[6], Expired: ns[7], Cancelled: ns[8], Redelivered: ns[9], Retried: ns[10], Died: ns[11]}
}

// addTo adds a partition to the counts of its group. end is where its main topic ends.
func (t tally) addTo(gs *driver.GroupStats, end int64) {
	gs.Ready += int64(t.Ready) + max(0, end-t.Next)
	gs.Inflight += int64(t.Inflight)
	gs.Waiting += int64(t.Waiting)
	gs.Acked += t.Acked
	gs.Dropped += t.Dropped
	gs.Expired += t.Expired
	gs.Cancelled += t.Cancelled
	gs.Redelivered += t.Redelivered
	gs.Retried += t.Retried
	gs.Died += t.Died
}
