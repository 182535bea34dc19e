package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
)

// Marks of work in this process. Work under way ends with it, so it needs no lease; what was done is kept.
//
// There may be a million of them, so nothing here has a pointer: the garbage collector need not look at them.

// digest stands for the name of a layer and an id: half of a SHA-256, so that no two are alike, whoever chooses the
// ids.
type digest [16]byte

func digestOf(r *store.MarkRequest) (d digest) {
	var room [320]byte
	text := append(room[:0], r.Name...)
	text = append(text, 0)
	text = append(text, r.ID...)
	sum := sha256.Sum256(text)
	return digest(sum[:len(d)])
}

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// parseDigest reads what String wrote.
func parseDigest(s string) (d digest, ok bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(d) {
		return d, false
	}
	return digest(b), true
}

// mark is the work of one id: done until a time of the ledger, or under way by a token.
type mark struct {
	token uint64 // zero: done
	until time.Duration
}

func (m mark) over(at time.Duration) bool { return m.token == 0 && at >= m.until }

// fade is when a mark may be forgotten.
type fade struct {
	of    digest
	until time.Duration
}

// fade forgets marks whose time is over. Those of longer windows may hold up others for a while.
func (l *ledger) fade(at time.Duration) {
	for len(l.fades) > 0 && at >= l.fades[0].until {
		if m, ok := l.marks[l.fades[0].of]; ok && m.over(at) {
			delete(l.marks, l.fades[0].of)
		}
		l.fades = l.fades[1:]
	}
}

// forget makes room: what was done first is forgotten before its time. Refusing what is new would stop all work until
// the first window ends, which may be days.
func (l *ledger) forget() bool {
	for len(l.fades) > 0 {
		first := l.fades[0]
		l.fades = l.fades[1:]
		if m, ok := l.marks[first.of]; ok && m.over(first.until) {
			delete(l.marks, first.of)
			return true
		}
	}
	return false
}

func (l *ledger) begin(now time.Time, r store.MarkRequest) (store.Mark, error) {
	at := now.Sub(l.epoch)
	l.fade(at)
	k := digestOf(&r)
	m, known := l.marks[k]
	switch {
	case !known || m.over(at):
	case m.token == 0:
		return store.Mark{Done: true}, nil
	case m.token == r.Token:
		return store.Mark{Ours: true, Token: r.Token}, nil
	default:
		return store.Mark{}, nil
	}
	for !known && len(l.marks) >= l.maxKeys {
		if !l.forget() {
			return store.Mark{}, driver.NewError(driver.ErrFull, fmt.Sprintf("work of %d ids is under way already", l.maxKeys),
				"raise MaxKeys", nil)
		}
	}
	l.token++
	l.marks[k] = mark{token: l.token}
	return store.Mark{Ours: true, Token: l.token}, nil
}

func (l *ledger) complete(now time.Time, r store.MarkRequest) {
	until := now.Add(r.Window)
	k := digestOf(&r)
	l.done(k, until)
	if l.keep != nil {
		l.keep(entry{Mark: k.String(), Done: until})
	}
}

// done notes that the work of a digest is done, until a time.
func (l *ledger) done(k digest, until time.Time) {
	m := mark{until: until.Sub(l.epoch)}
	l.marks[k] = m
	l.fades = append(l.fades, fade{k, m.until})
}

func (l *ledger) abort(r store.MarkRequest) {
	k := digestOf(&r)
	if m, ok := l.marks[k]; ok && m.token != 0 && m.token == r.Token {
		delete(l.marks, k)
	}
}
