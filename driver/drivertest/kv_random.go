package drivertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// kvRow is a value as the model has it.
type kvRow struct {
	data            string
	revision, epoch uint64
	ends            time.Time // zero: never
}

// kvModel says what becomes of writes. It is written from the contract alone, and shares no code with any driver.
type kvModel struct {
	rows    map[string]kvRow
	asked   map[string]kvRow // by request
	written []string         // names, in order
	marks   map[uint64]int   // how many were written up to a revision
	last    uint64
}

// row returns what there is now.
func (m *kvModel) row(name string) (kvRow, bool) {
	row, ok := m.rows[name]
	return row, ok && (row.ends.IsZero() || time.Now().Before(row.ends))
}

// verdict is the kind of error that a write must have, nil if it is applied.
func (m *kvModel) verdict(w *driver.Write) error {
	if w.Fence != nil {
		if lease, ok := m.row(w.Fence.Name); !ok || lease.epoch != w.Fence.Epoch {
			return driver.ErrLeaseLost
		}
	}
	there, ok := m.row(w.Name)
	if w.If == driver.Absent && ok || w.If != 0 && w.If != driver.Absent && (!ok || there.revision != uint64(w.If)) {
		return driver.ErrConflict
	}
	return nil
}

// apply judges a result, and takes over what it says of revisions.
func (m *kvModel) apply(w *driver.Write, r driver.WriteResult) error {
	if first, known := m.asked[w.Request]; w.Request != "" && known {
		if r.Err != nil || r.Revision != first.revision || r.Epoch != first.epoch {
			return fmt.Errorf("repeated under request %s it gives %+v, first %+v", w.Request, r, first)
		}
		return nil
	}
	there, exists := m.row(w.Name)
	switch want := m.verdict(w); {
	case want == nil && r.Err != nil, want != nil && !errors.Is(r.Err, want):
		return fmt.Errorf("error %w, want %w", r.Err, want)
	case errors.Is(want, driver.ErrConflict) && (r.Revision != there.revision && exists || !exists && r.Revision != 0 ||
		exists && string(r.Data) != there.data):
		return fmt.Errorf("beside the conflict %+v, want %+v", r.Value, there)
	case want != nil:
		return nil
	case w.Delete:
		if exists {
			m.written = append(m.written, w.Name)
		}
		delete(m.rows, w.Name)
		m.remember(w, kvRow{})
		if r.Revision != 0 {
			return fmt.Errorf("a deletion gives %+v", r.Value)
		}
		return nil
	}
	row := kvRow{data: string(w.Data), revision: r.Revision, epoch: r.Revision}
	if exists {
		row.epoch = there.epoch
	}
	if w.TTL > 0 {
		row.ends = time.Now().Add(w.TTL)
	}
	if r.Revision <= m.last || r.Epoch != row.epoch || r.Name != w.Name || len(r.Data) > 0 {
		return fmt.Errorf("%+v, want epoch %d and a revision above %d", r.Value, row.epoch, m.last)
	}
	m.rows[w.Name], m.last, m.written = row, r.Revision, append(m.written, w.Name)
	m.marks[r.Revision] = len(m.written)
	m.remember(w, row)
	return nil
}

// remember notes what a write is answered when it is repeated.
func (m *kvModel) remember(w *driver.Write, row kvRow) {
	if w.Request != "" {
		m.asked[w.Request] = row
	}
}

// kvRandomSteps: whatever is written in whatever order, what is there is what the contract says.
func kvRandomSteps(t *T) {
	rnd := t.random(7)
	m := &kvModel{rows: map[string]kvRow{}, asked: map[string]kvRow{}, marks: map[uint64]int{}}
	for step := range 120 {
		var ws []driver.Write
		for range 1 + rnd.IntN(3) {
			ws = append(ws, m.draw(rnd, step, t.Virtual))
		}
		for i, r := range t.kv().Apply(t.ctx(), bucket, driver.KVOptions{}, ws...) {
			if err := m.apply(&ws[i], r); err != nil {
				t.Fatalf("step %d, %+v: %v", step, ws[i], err)
			}
		}
		if t.Virtual && rnd.IntN(4) == 0 { // elsewhere nobody knows to the moment what has expired
			t.pass(time.Duration(rnd.IntN(2_000)) * time.Millisecond)
		}
		m.compare(t, step)
		if step%10 == 9 {
			m.compareChanges(t, rnd)
		}
	}
}

func kvName(rnd *rand.Rand) string { return fmt.Sprint("n", rnd.IntN(5)) }

// draw makes a write whose conditions hold about as often as not. Requests are new, or of the step before: none is
// older than its minute.
func (m *kvModel) draw(rnd *rand.Rand, step int, expires bool) driver.Write {
	w := driver.Write{Name: kvName(rnd), Quiet: rnd.IntN(3) == 0}
	there, _ := m.row(w.Name)
	switch rnd.IntN(6) {
	case 0:
		w.If = driver.Absent
	case 1, 2:
		w.If = driver.Condition(there.revision + uint64(rnd.IntN(2)))
	}
	if rnd.IntN(4) == 0 {
		lease, _ := m.row("n0")
		w.Fence = &driver.Fence{Name: "n0", Epoch: lease.epoch + 1 - uint64(min(rnd.IntN(3), 1))}
		if w.Fence.Epoch == 0 {
			w.Fence = nil
		}
	}
	if rnd.IntN(5) == 0 {
		w.Request = fmt.Sprint("r", step-rnd.IntN(2))
	}
	if w.Delete = rnd.IntN(4) == 0; w.Delete {
		return w
	}
	w.Data = fmt.Appendf(nil, "%d", rnd.IntN(1_000))
	if rnd.IntN(3) == 0 {
		w.TTL = time.Hour
		if expires {
			w.TTL = time.Duration(1+rnd.IntN(4)) * time.Second
		}
	}
	return w
}

// compare demands that what can be read is what the model has.
func (m *kvModel) compare(t *T, step int) {
	t.Helper()
	var names, listed, want []string
	for i := range 5 {
		names = append(names, fmt.Sprint("n", i))
	}
	vs, err := t.kv().Get(t.ctx(), bucket, names...)
	t.ok(err, "Get")
	for i, v := range vs {
		row, ok := m.row(names[i])
		if ok {
			want = append(want, names[i])
		}
		if ok != (v.Revision != 0) || ok && (v.Revision != row.revision || v.Epoch != row.epoch ||
			string(v.Data) != row.data || (v.Left > 0) == row.ends.IsZero()) {
			t.Fatalf("step %d: %+v, want %+v (%v)", step, v, row, ok)
		}
	}
	page, err := t.kv().List(t.ctx(), driver.KVQuery{Bucket: bucket})
	t.ok(err, "List")
	for _, v := range page.Values {
		listed = append(listed, v.Name)
	}
	t.equal(listed, want, "names of the bucket")
}

// compareChanges asks for what was written after some write. What has expired meanwhile may be told or not.
func (m *kvModel) compareChanges(t *T, rnd *rand.Rand) {
	t.Helper()
	var revisions []uint64
	for revision, n := range m.marks {
		if n < len(m.written) {
			revisions = append(revisions, revision)
		}
	}
	if len(revisions) == 0 {
		return
	}
	slices.Sort(revisions)
	after := revisions[rnd.IntN(len(revisions))]
	vs, upTo, err := t.kv().Changes(t.ctx(), bucket, after)
	t.ok(err, "Changes")
	if upTo < m.last {
		t.Fatalf("changes after %d are told up to %d, and the last write has revision %d", after, upTo, m.last)
	}
	expired := func(name string) bool {
		_, kept := m.rows[name]
		_, lives := m.row(name)
		return kept && !lives
	}
	var got, want []string
	for _, v := range vs {
		if _, lives := m.row(v.Name); !expired(v.Name) && v.Deleted == lives {
			t.Fatalf("changes after %d: %+v", after, v)
		}
		if !expired(v.Name) {
			got = append(got, v.Name)
		}
	}
	since := m.written[m.marks[after]:]
	for i, name := range since {
		if !expired(name) && !slices.Contains(since[i+1:], name) {
			want = append(want, name)
		}
	}
	t.equal(got, want, fmt.Sprintf("names changed after %d", after))
}
