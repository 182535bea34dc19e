package kv

import (
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Stored is a value as it is taken out of a bucket. Its data is shared: nobody changes it.
type Stored struct {
	Name            string
	Data            []byte
	Revision, Epoch uint64
	Written         time.Time
	TTL             time.Duration // zero: never
	Since           time.Time     // when its TTL began to count
}

// Answer is what was applied under a request.
type Answer struct {
	Request string
	Value   driver.Value // without data
	Since   time.Time    // when its minute began to count
}

// Export returns what is in a bucket, in order of names, and what it remembers of requests, oldest first.
func (b *Bucket) Export(now time.Time) (vs []Stored, as []Answer) {
	for name, v := range b.values {
		if v.lives(now) {
			s := Stored{Name: name, Data: v.data, Revision: v.revision, Epoch: v.epoch, Written: v.written, TTL: v.ttl}
			if v.ttl > 0 {
				s.Since = v.ends.Add(-v.ttl)
			}
			vs = append(vs, s)
		}
	}
	slices.SortFunc(vs, func(a, b Stored) int { return strings.Compare(a.Name, b.Name) })
	for _, request := range b.requests.order {
		if a := b.requests.known[request]; now.Before(a.until) {
			as = append(as, Answer{request, a.value, a.until.Add(-driver.RequestFor)})
		}
	}
	return vs, as
}

// Import puts a value into a bucket as it was, without judging it.
func (b *Bucket) Import(s Stored) {
	v := &value{data: s.Data, revision: s.Revision, epoch: s.Epoch, written: s.Written, ttl: s.TTL}
	if s.TTL > 0 {
		v.ends = s.Since.Add(s.TTL)
	}
	b.set(s.Name, v)
	b.revision = max(b.revision, s.Revision)
}

// ImportAnswer lets a bucket remember a request as it did, in the order of Export.
func (b *Bucket) ImportAnswer(a Answer) {
	b.requests.restore(a.Request, answer{a.Value, a.Since.Add(driver.RequestFor)})
}
