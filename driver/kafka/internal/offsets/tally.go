package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// Tally is what an owner counts in a partition. It is committed beside the offset, so that others need not read the
// messages.
type Tally struct {
	Ready, Inflight, Waiting                        uint64 // fetched, or in the retry log
	Next                                            int64  // of the main topic: what is beyond is ready
	Logged                                          int64  // of the retry log: what is beyond is not counted
	Acked, Dropped, Expired, Cancelled, Redelivered uint64
	Retried, Died                                   uint64
}

// tallyPart begins a tally in the metadata.
const tallyPart = 'N'

func (t Tally) String() string {
	var buf []byte
	for _, n := range []uint64{t.Ready, t.Inflight, t.Waiting, uint64(t.Next), uint64(t.Logged), t.Acked, t.Dropped,
		t.Expired, t.Cancelled, t.Redelivered,
		t.Retried, t.Died} {
		buf = binary.AppendUvarint(buf, n)
	}
	return string(tallyPart) + base64.RawStdEncoding.EncodeToString(buf) + ";"
}

// ReadTally finds the tally in the metadata of a commit. Without one everything beyond the offset is ready.
func ReadTally(metadata string, at int64) Tally {
	t := Tally{Next: max(0, at)}
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
	return Tally{Ready: ns[0], Inflight: ns[1], Waiting: ns[2], Next: int64(ns[3]), Logged: int64(ns[4]),
		Acked: ns[5], Dropped: ns[6], Expired: ns[7], Cancelled: ns[8], Redelivered: ns[9], Retried: ns[10], Died: ns[11]}
}

// AddTo adds a partition to the counts of its group. end is where its main topic ends.
func (t Tally) AddTo(gs *driver.GroupStats, end int64) {
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
