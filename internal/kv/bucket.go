// Package kv holds named values: what driver.KV promises, judged in one place for every broker that judges in Go.
//
//	bucket   values, and the verdict on a write: no locks, no clock, nothing stored
//	names    the order of names; endings: that of expiry
//	changes  what was written lately
//	requests what was applied under a request
//	waiters  who waits for a value
//	export   a bucket taken out, and put back elsewhere
//	local    buckets in this process, over a store or without
//	record   how values are stored
package kv

import (
	"container/heap"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Bucket is the values of one bucket. The same writes at the same times give the same bucket and the same results,
// wherever they are applied: readers of one Kafka log agree because of that, so that no verdict changes without a new
// version of its records (internal/kafkakv). It is not safe for concurrent use.
type Bucket struct {
	Name     string
	revision uint64
	values   map[string]*value
	names    names
	ends     endings
	changes  changes
	requests requests
}

// value is one value. A value that has expired stays until it is overwritten or swept: it is absent all the same.
type value struct {
	data            []byte
	revision, epoch uint64
	written         time.Time
	ttl             time.Duration // what it was written with
	ends            time.Time     // zero: never
}

// NewBucket returns an empty bucket whose revisions begin above one.
func NewBucket(name string, revision uint64) *Bucket {
	return &Bucket{Name: name, revision: revision, values: map[string]*value{}, changes: changes{forgotten: revision}}
}

// Revision is that of the newest write.
func (b *Bucket) Revision() uint64 { return b.revision }

func (v *value) lives(now time.Time) bool { return v != nil && (v.ends.IsZero() || now.Before(v.ends)) }

// shown is a value as a reader sees it. Its data is shared: nobody changes it.
func (v *value) shown(name string, now time.Time) driver.Value {
	if !v.lives(now) {
		return driver.Value{Name: name}
	}
	out := driver.Value{Name: name, Data: v.data, Revision: v.revision, Epoch: v.epoch, Written: v.written.Round(0)}
	if !v.ends.IsZero() {
		out.Left = v.ends.Sub(now)
	}
	return out
}

// Get returns the value of a name, with Revision 0 if there is none.
func (b *Bucket) Get(name string, now time.Time) driver.Value { return b.values[name].shown(name, now) }

// List returns a page. The query is checked.
func (b *Bucket) List(q driver.KVQuery, now time.Time) driver.KVPage {
	page := driver.KVPage{Revision: b.revision}
	for _, name := range b.names.from(q.Prefix, q.After, b.values) {
		v := b.values[name]
		switch {
		case !hasPrefix(name, q.Prefix):
			return page
		case !v.lives(now):
			continue
		case len(page.Values) == q.Limit:
			page.Next = page.Values[q.Limit-1].Name
			return page
		}
		page.Values = append(page.Values, v.shown(name, now))
	}
	return page
}

func hasPrefix(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }

// Effect is what a write did beyond its result, for whoever stores the bucket.
type Effect struct {
	Applied bool // something changed
	// Remembered says that the write was noted under its request.
	Remembered bool
	// Expired and Forgotten are values and requests that made room before the write.
	Expired, Forgotten []string
}

// Apply judges a write, which is checked, and applies it at a revision that is above the last one and at least this.
func (b *Bucket) Apply(w *driver.Write, now time.Time, least uint64) (driver.WriteResult, Effect) {
	if known, ok := b.requests.find(w.Request, now); ok {
		return driver.WriteResult{Value: known}, Effect{}
	}
	effect := b.makeRoom(w, now)
	there := b.Get(w.Name, now)
	if err := b.refuse(w, there, now); err != nil {
		return driver.WriteResult{Value: there, Err: err}, effect
	}
	if w.Delete && there.Revision == 0 {
		effect.Remembered = b.remember(w.Request, there, now)
		return driver.WriteResult{Value: there}, effect
	}
	b.revision = max(b.revision+1, least)
	if w.Delete {
		b.remove(w.Name)
	} else {
		b.put(w, there, now)
	}
	b.changes.add(w.Name, b.revision)
	result := b.Get(w.Name, now)
	result.Data = nil
	effect.Applied, effect.Remembered = true, b.remember(w.Request, result, now)
	return driver.WriteResult{Value: result}, effect
}

// remember notes how a write was answered, if it has a request. A deletion that found nothing is noted, too: repeated,
// it must not remove what was written since.
func (b *Bucket) remember(request string, v driver.Value, now time.Time) bool {
	if request != "" {
		b.requests.add(request, v, now)
	}
	return request != ""
}

// Unremember takes back what the newest write noted under its request.
func (b *Bucket) Unremember() { b.requests.dropNewest() }

// makeRoom drops what has expired where a write needs its room.
func (b *Bucket) makeRoom(w *driver.Write, now time.Time) (e Effect) {
	if len(b.values) >= driver.MaxValues {
		e.Expired = b.Sweep(now, driver.MaxValues)
	}
	if w.Request != "" {
		e.Forgotten = b.requests.forget(now)
	}
	return e
}

// refuse says why a write is not applied, or nil.
func (b *Bucket) refuse(w *driver.Write, there driver.Value, now time.Time) error {
	if w.Fence != nil && b.Get(w.Fence.Name, now).Epoch != w.Fence.Epoch {
		return w.FenceLost()
	}
	switch w.If {
	case 0:
	case driver.Absent:
		if there.Revision != 0 {
			return w.Found(there)
		}
	default:
		if there.Revision != uint64(w.If) {
			return w.Found(there)
		}
	}
	if _, known := b.values[w.Name]; !known && !w.Delete && len(b.values) >= driver.MaxValues {
		return driver.BucketFull(b.Name)
	}
	if w.Request != "" && len(b.requests.known) >= driver.MaxRequests {
		return driver.BucketFull(b.Name)
	}
	return nil
}

func (b *Bucket) put(w *driver.Write, there driver.Value, now time.Time) {
	v := &value{data: append([]byte(nil), w.Data...), revision: b.revision, epoch: there.Epoch, written: now}
	if v.epoch == 0 {
		v.epoch = b.revision
	}
	if w.TTL > 0 {
		v.ttl, v.ends = w.TTL, now.Add(w.TTL)
	}
	b.set(w.Name, v)
}

func (b *Bucket) set(name string, v *value) {
	_, known := b.values[name]
	b.values[name] = v
	if !known {
		b.names.add(name, b.values)
	}
	if v.ends.IsZero() {
		return
	}
	heap.Push(&b.ends, ending{v.ends, name})
	if len(b.ends) > 2*len(b.values)+remembered { // most were renewed
		b.arrangeEnds()
	}
}

// arrangeEnds makes the heap anew from the values.
func (b *Bucket) arrangeEnds() {
	b.ends = b.ends[:0]
	for name, v := range b.values {
		if !v.ends.IsZero() {
			b.ends = append(b.ends, ending{v.ends, name})
		}
	}
	heap.Init(&b.ends)
}

// Renew is told that another clock counts from now on, and what the old one showed last. What had expired by the old
// one is gone; everything else has its whole TTL again, and requests their minute, since nobody knows how far the two
// clocks differ.
func (b *Bucket) Renew(last, now time.Time) {
	b.Sweep(last, len(b.values))
	b.requests.forget(last)
	for name, v := range b.values {
		if v.ttl > 0 {
			again := *v
			again.ends = now.Add(v.ttl)
			b.values[name] = &again
		}
	}
	b.arrangeEnds()
	b.requests.renew(now)
}

func (b *Bucket) remove(name string) { delete(b.values, name) }

// Sweep forgets up to so many values that have expired, and returns their names.
func (b *Bucket) Sweep(now time.Time, most int) (gone []string) {
	for len(b.ends) > 0 && len(gone) < most && !now.Before(b.ends[0].at) {
		x := heap.Pop(&b.ends).(ending)
		if v := b.values[x.name]; v != nil && v.ends.Equal(x.at) { // else it was renewed or removed
			b.remove(x.name)
			gone = append(gone, x.name)
		}
	}
	return gone
}

// NextEnd is when Sweep has something to do, or earlier; zero: never.
func (b *Bucket) NextEnd() time.Time {
	if len(b.ends) == 0 {
		return time.Time{}
	}
	return b.ends[0].at
}

// Changes returns what was written after a revision, oldest first, and up to which revision that is all. Not ok: some
// of it is forgotten.
func (b *Bucket) Changes(after uint64, now time.Time) (vs []driver.Value, upTo uint64, ok bool) {
	written, ok := b.changes.after(after)
	if !ok {
		return nil, 0, false
	}
	upTo = max(after, b.revision)
	for _, c := range written {
		v := b.values[c.name]
		switch {
		case v == nil:
			vs = append(vs, driver.Value{Name: c.name, Revision: c.revision, Deleted: true})
		case v.revision == c.revision && v.lives(now):
			vs = append(vs, v.shown(c.name, now))
		}
	}
	return vs, upTo, true
}
