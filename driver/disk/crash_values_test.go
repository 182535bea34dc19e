package disk

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ferrymq/ferry/driver"
)

// Named values in the crash tests: after a crash each is what was last acknowledged or seen, or one that was being
// written, whole, and no revision is given twice, unless the crash lost what an interval had not synced yet.

const crashBucket = "values"

var crashNames = []string{"a", "b", "c"}

// crashValue is what a write made of a value. No two writes have the same data; without any it is a deletion.
type crashValue struct {
	name, data string
	revision   uint64 // zero: not known
}

// writeValues writes some values at the same time, each once or twice, while others read them.
func (w *world) writeValues() {
	var wg sync.WaitGroup
	for _, name := range crashNames[:1+w.rng.IntN(len(crashNames))] {
		var ws []driver.Write
		for range 1 + w.rng.IntN(2) {
			w.ids++
			write := driver.Write{Name: name, Data: fmt.Appendf(nil, "%d %0*d", w.ids, 1+w.rng.IntN(300), 0)}
			if w.rng.IntN(5) == 0 {
				write = driver.Write{Name: name, Delete: true}
			}
			ws = append(ws, write)
		}
		wg.Go(func() { w.writeValue(ws) })
		wg.Go(func() { w.readValue(name) })
	}
	wg.Wait()
}

func (w *world) writeValue(ws []driver.Write) {
	for i := range ws {
		v := crashValue{name: ws[i].Name, data: string(ws[i].Data)}
		w.note(event{kind: writing, value: v})
		r := w.d.KV().Apply(ctx, crashBucket, driver.KVOptions{}, ws[i])[0]
		if r.Err != nil {
			w.t.Errorf("write of %s: %v", v.name, r.Err)
			return
		}
		v.revision = r.Revision
		w.note(event{kind: wrote, value: v})
	}
}

func (w *world) readValue(name string) {
	for range 3 {
		vs, err := w.d.KV().Get(ctx, crashBucket, name)
		if err != nil {
			w.t.Errorf("Get of %s: %v", name, err)
			return
		}
		if vs[0].Revision != 0 {
			w.note(event{kind: read, value: crashValue{name, string(vs[0].Data), vs[0].Revision}})
		}
	}
}

// newestRevision is the highest that anybody was told by then.
func (w *world) newestRevision(events int) uint64 {
	newest := w.given
	for _, e := range w.events[:events] {
		newest = max(newest, e.value.revision)
	}
	return newest
}

// foundValues are the values that a crash left, as if they had been written.
func (w *world) foundValues(d *Driver) (events []event) {
	vs, err := d.KV().Get(ctx, crashBucket, crashNames...)
	w.ok(err, "Get")
	for _, v := range vs {
		value := crashValue{v.Name, string(v.Data), v.Revision}
		events = append(events, event{kind: writing, value: value}, event{kind: wrote, value: value})
	}
	return events
}

// values demands that every value is one that it may be, and that revisions go on.
func (j *judge) values() {
	vs, err := j.d.KV().Get(ctx, crashBucket, crashNames...)
	j.ok(err, "Get")
	for _, v := range vs {
		may := j.possible(v.Name)
		if !slices.ContainsFunc(may, func(p crashValue) bool {
			return p.data == string(v.Data) && (p.revision == 0 || p.revision == v.Revision) &&
				(p.data == "") == (v.Revision == 0)
		}) {
			j.wrong("value %s is %q at %d, and may be %+v", v.Name, v.Data, v.Revision, may)
		}
	}
	r := j.d.KV().Apply(ctx, crashBucket, driver.KVOptions{}, driver.Write{Name: "next"})[0]
	j.ok(r.Err, "a write after the crash")
	if newest := j.newestRevision(j.c.events); j.safe() && r.Revision <= newest {
		j.wrong("revision %d is given again: callers know %d", r.Revision, newest)
	}
}

// possible is what a value may be: what was acknowledged or seen, and what came after that.
func (j *judge) possible(name string) []crashValue {
	may := []crashValue{{name: name}}
	for _, e := range j.events[:j.c.events] {
		if e.value.name != name {
			continue
		}
		if e.kind == writing {
			may = append(may, e.value)
			continue
		}
		i := slices.IndexFunc(may, func(p crashValue) bool { return p.data == e.value.data })
		if e.value.data == "" { // one deletion is like another: it is the newest
			i = len(may) - 1
		}
		switch {
		case i < 0: // seen before something newer was acknowledged
		case j.safe():
			may = may[i:]
			may[0].revision = e.value.revision
		default:
			may[i].revision = e.value.revision
		}
	}
	return may
}
