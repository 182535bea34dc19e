package kv

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Record is a change of what is stored: a key and its value, or nil where it is removed.
type Record struct{ Key, Value []byte }

// Keys begin with a letter of their own; whoever stores them puts their own prefix before it.
//
//	v bucket 0 name     a value
//	q bucket 0 request  what was applied under a request
//	r                   the newest revision
const (
	keyValue    = 'v'
	keyRequest  = 'q'
	keyRevision = 'r'
)

func textKey(kind byte, bucket, name string) []byte {
	return append(append(append([]byte{kind}, bucket...), 0), name...)
}

// step collects what one step changes in the store.
type step struct {
	bucket  *Bucket
	now     time.Time
	records []Record
}

// note stores what a write left behind.
func (s *step) note(w *driver.Write) {
	s.records = append(s.records, Record{textKey(keyValue, s.bucket.Name, w.Name), nil},
		Record{[]byte{keyRevision}, binary.AppendUvarint(nil, s.bucket.revision)})
	if v := s.bucket.values[w.Name]; v != nil {
		s.records[len(s.records)-2].Value = appendValue(nil, v)
	}
}

// noteRequest stores how a write was answered.
func (s *step) noteRequest(request string) {
	s.records = append(s.records, Record{textKey(keyRequest, s.bucket.Name, request),
		appendAnswer(nil, s.bucket.requests.known[request])})
}

func (s *step) forget(name string) {
	s.records = append(s.records, Record{textKey(keyValue, s.bucket.Name, name), nil})
}

func (s *step) forgetRequest(request string) {
	s.records = append(s.records, Record{textKey(keyRequest, s.bucket.Name, request), nil})
}

func appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(dst, 0)
	}
	return binary.AppendVarint(dst, t.UnixNano())
}

func appendValue(dst []byte, v *value) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, v.revision), v.epoch)
	return append(appendTime(appendTime(dst, v.written), v.ends), v.data...)
}

func appendAnswer(dst []byte, a answer) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, a.value.Revision), a.value.Epoch)
	return append(appendTime(appendTime(dst, a.value.Written), a.until), a.value.Name...)
}

// decodeValue reads a value, or an answer: there data is the name.
func decodeValue(data []byte) (*value, error) {
	v := &value{}
	var n [4]int
	v.revision, n[0] = binary.Uvarint(data)
	v.epoch, n[1] = binary.Uvarint(data[max(n[0], 0):])
	var written, ends int64
	written, n[2] = binary.Varint(data[max(n[0], 0)+max(n[1], 0):])
	ends, n[3] = binary.Varint(data[max(n[0], 0)+max(n[1], 0)+max(n[2], 0):])
	at := 0
	for _, x := range n {
		if x <= 0 {
			return nil, errors.New("it is cut short")
		}
		at += x
	}
	v.written, v.data = time.Unix(0, written), append([]byte(nil), data[at:]...)
	if ends != 0 {
		v.ends = time.Unix(0, ends)
	}
	return v, nil
}

// Restore reads a record back, before anything else is done. Revisions go on above all that were stored and all that
// may have been given and lost.
func (l *Local) Restore(key, data []byte) error {
	if len(key) == 0 {
		return errors.New("it has no key")
	}
	if key[0] == keyRevision {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			return errors.New("the revision is damaged")
		}
		l.revision = max(l.revision, n+lostRevisions)
		return nil
	}
	bucket, name, ok := strings.Cut(string(key[1:]), "\x00")
	if !ok || key[0] != keyValue && key[0] != keyRequest {
		return errors.New("it is not a record of this program")
	}
	v, err := decodeValue(data)
	if err != nil {
		return err
	}
	b := l.buckets[bucket]
	if b == nil {
		b = NewBucket(bucket, 0)
		l.buckets[bucket] = b
	}
	l.revision = max(l.revision, v.revision+lostRevisions)
	if key[0] == keyValue {
		b.set(name, v)
		return nil
	}
	b.requests.restore(name, answer{
		driver.Value{Name: string(v.data), Revision: v.revision, Epoch: v.epoch, Written: v.written}, v.ends})
	return nil
}

// lostRevisions is more than can be given between two writes to the disk.
const lostRevisions = 1 << 20

// Restored ends the reading.
func (l *Local) Restored(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.buckets {
		b.revision, b.changes.forgotten = l.revision, l.revision
		b.requests.arrange()
	}
	l.arm(now)
}
