package drivertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// bucket is what a case uses when one is enough.
const bucket = "things"

// kv returns the named values of the driver.
func (t *T) kv() driver.KV { return t.Driver.KV() }

// apply makes one write.
func (t *T) apply(w driver.Write) driver.WriteResult {
	t.Helper()
	rs := t.kv().Apply(t.ctx(), bucket, driver.KVOptions{}, w)
	if len(rs) != 1 {
		t.Fatalf("Apply of one write returned %d results", len(rs))
	}
	return rs[0]
}

// set makes one write that must be applied.
func (t *T) set(w driver.Write) driver.Value {
	t.Helper()
	r := t.apply(w)
	t.ok(r.Err, "write of "+w.Name)
	return r.Value
}

// value reads one value.
func (t *T) value(name string) driver.Value {
	t.Helper()
	vs, err := t.kv().Get(t.ctx(), bucket, name)
	t.ok(err, "Get of "+name)
	if len(vs) != 1 || vs[0].Name != name {
		t.Fatalf("Get of %s returned %+v", name, vs)
	}
	return vs[0]
}

// holds demands that a value is there as it was written.
func (t *T) holds(name, data string, w driver.Value) {
	t.Helper()
	v := t.value(name)
	if string(v.Data) != data || v.Revision != w.Revision || v.Epoch != w.Epoch {
		t.Fatalf("%s is %q at %d, epoch %d, want %q at %d, epoch %d", name, v.Data, v.Revision, v.Epoch, data, w.Revision,
			w.Epoch)
	}
}

// absent demands that there is no such value.
func (t *T) absent(name string) {
	t.Helper()
	if v := t.value(name); v.Revision != 0 || v.Epoch != 0 || len(v.Data) > 0 {
		t.Fatalf("%s is %+v, want nothing", name, v)
	}
}

// ends waits until a value expires, and demands that it does so in time.
func (t *T) ends(name string, v driver.Value, due time.Time) {
	t.Helper()
	left, err := t.kv().Wait(t.ctx(), bucket, name, v.Revision)
	t.ok(err, "Wait for the end of "+name)
	t.onTime(due, "the end of "+name)
	t.equal(left.Revision, uint64(0), "revision after the end")
	t.absent(name)
}

// refusedWith demands an error of this kind with a hint.
func (t *T) refusedWith(err, kind error, what string) {
	t.Helper()
	t.wantErr(err, kind, what)
	t.hinted(err)
}

// kvReadsWhatWasWritten: revisions grow, an epoch stays while a value exists, and what a caller gets is its own.
func kvReadsWhatWasWritten(t *T) {
	t.absent("a")
	data := []byte("one\x00\xff")
	before := time.Now()
	first := t.set(driver.Write{Name: "a", Data: data})
	data[0] = 'X'
	t.holds("a", "one\x00\xff", first)
	if v := t.value("a"); v.Epoch != v.Revision || v.Left != 0 || v.Written.Sub(before).Abs() > time.Minute {
		t.Errorf("%+v", v)
	}
	t.value("a").Data[0] = 'X'
	second := t.set(driver.Write{Name: "a", Data: []byte("two")})
	if second.Revision <= first.Revision || second.Epoch != first.Epoch {
		t.Errorf("%+v after %+v", second, first)
	}
	t.holds("a", "two", second)
	other := t.set(driver.Write{Name: "b"})
	if other.Revision <= second.Revision {
		t.Errorf("%+v after %+v", other, second)
	}
	vs, err := t.kv().Get(t.ctx(), bucket, "b", "missing", "a")
	t.ok(err, "Get")
	if len(vs) != 3 || vs[0].Revision != other.Revision || vs[1].Revision != 0 || string(vs[2].Data) != "two" {
		t.Errorf("%+v", vs)
	}
}

// kvConditions: a write is applied only if what it demands is there, and who is refused is told what is.
func kvConditions(t *T) {
	if r := t.apply(driver.Write{Name: "a", If: 7}); !errors.Is(r.Err, driver.ErrConflict) || r.Revision != 0 {
		t.Errorf("a revision of what does not exist: %+v", r)
	}
	first := t.set(driver.Write{Name: "a", Data: []byte("one"), If: driver.Absent})
	r := t.apply(driver.Write{Name: "a", Data: []byte("two"), If: driver.Absent})
	if !errors.Is(r.Err, driver.ErrConflict) || r.Revision != first.Revision || string(r.Data) != "one" {
		t.Errorf("absent although it exists: %+v", r)
	}
	r.Data[0] = 'X'
	t.holds("a", "one", first)
	second := t.set(driver.Write{Name: "a", Data: []byte("two"), If: driver.Condition(first.Revision)})
	if r := t.apply(driver.Write{Name: "a", Data: []byte("three"), If: driver.Condition(first.Revision)}); !errors.Is(
		r.Err, driver.ErrConflict) || r.Revision != second.Revision {
		t.Errorf("an older revision: %+v", r)
	}
	if r := t.apply(driver.Write{Name: "a", Delete: true, If: driver.Condition(first.Revision)}); !errors.Is(r.Err,
		driver.ErrConflict) {
		t.Errorf("the deletion of an older revision: %+v", r)
	}
	t.holds("a", "two", second)
	if r := t.set(driver.Write{Name: "a", Delete: true, If: driver.Condition(second.Revision)}); r.Revision != 0 {
		t.Errorf("%+v", r)
	}
	t.absent("a")
	if r := t.apply(driver.Write{Name: "a", Delete: true, If: driver.Condition(second.Revision)}); !errors.Is(r.Err,
		driver.ErrConflict) {
		t.Errorf("the deletion of what is gone: %+v", r)
	}
	t.set(driver.Write{Name: "a", Delete: true}) // changes nothing
	third := t.set(driver.Write{Name: "a", If: driver.Absent})
	if third.Revision <= second.Revision || third.Epoch != third.Revision {
		t.Errorf("%+v after a deletion, before which there was %+v", third, second)
	}
}

// kvOneWins: of many who want the same, one gets it each time.
func kvOneWins(t *T) {
	const writers, rounds = 8, 20
	var mu sync.Mutex
	won := map[uint64]int{}
	var wg sync.WaitGroup
	t.set(driver.Write{Name: "a"})
	for range writers {
		wg.Go(func() {
			for n := 0; n < rounds; {
				vs, err := t.kv().Get(t.ctx(), bucket, "a")
				if err != nil {
					t.Errorf("Get: %v", err)
					return
				}
				r := t.kv().Apply(t.ctx(), bucket, driver.KVOptions{}, driver.Write{Name: "a",
					If: driver.Condition(vs[0].Revision)})[0]
				if errors.Is(r.Err, driver.ErrConflict) {
					continue
				}
				if r.Err != nil {
					t.Errorf("Apply: %v", r.Err)
					return
				}
				n++
				mu.Lock()
				won[vs[0].Revision]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for revision, n := range won {
		if n != 1 {
			t.Errorf("%d writers replaced revision %d", n, revision)
		}
	}
	if len(won) != writers*rounds {
		t.Errorf("%d revisions were replaced, want %d", len(won), writers*rounds)
	}
}

// kvSteps: the writes of one call are judged one after the other, and each for itself.
func kvSteps(t *T) {
	ws := []driver.Write{{Name: "a", Data: []byte("1"), If: driver.Absent},
		{Name: "a", Data: []byte("2"), If: driver.Absent},
		{Name: "b", TTL: 1}, {Name: "c", Data: []byte("3"), Fence: &driver.Fence{Name: "a", Epoch: 1 << 40}},
		{Name: "d", Data: []byte("4")}}
	rs := t.kv().Apply(t.ctx(), bucket, driver.KVOptions{}, ws...)
	if len(rs) != len(ws) {
		t.Fatalf("%d results", len(rs))
	}
	for i, kind := range []error{nil, driver.ErrConflict, driver.ErrInvalid, driver.ErrLeaseLost, nil} {
		if !errors.Is(rs[i].Err, kind) || kind == nil && rs[i].Err != nil {
			t.Errorf("write %d: %v, want %v", i, rs[i].Err, kind)
		}
	}
	t.holds("a", "1", rs[0].Value)
	t.absent("b")
	t.absent("c")
	t.holds("d", "4", rs[4].Value)
	if rs[1].Revision != rs[0].Revision || rs[4].Revision <= rs[0].Revision {
		t.Errorf("%+v", rs)
	}
	if rs := t.kv().Apply(t.ctx(), bucket, driver.KVOptions{}); len(rs) != 0 {
		t.Errorf("no write gives %+v", rs)
	}
}

// kvRequests: a write that was applied is answered as the first time when it is repeated, and not applied again.
func kvRequests(t *T) {
	w := driver.Write{Name: "a", Data: []byte("one"), If: driver.Absent, Request: "r1"}
	first := t.set(w)
	for range 2 {
		again := t.set(w)
		if again.Revision != first.Revision || again.Epoch != first.Epoch || again.Name != "a" {
			t.Errorf("%+v, first %+v", again, first)
		}
	}
	second := t.set(driver.Write{Name: "a", Data: []byte("two")})
	if again := t.set(w); again.Revision != first.Revision {
		t.Errorf("after another write: %+v, first %+v", again, first)
	}
	t.holds("a", "two", second)
	t.set(driver.Write{Name: "a", Delete: true, Request: "r2"})
	third := t.set(driver.Write{Name: "a", Data: []byte("three"), Request: "r3"})
	t.set(driver.Write{Name: "a", Delete: true, Request: "r2"})
	t.holds("a", "three", third)
	if r := t.apply(driver.Write{Name: "a", If: driver.Absent, Request: "r4"}); !errors.Is(r.Err, driver.ErrConflict) {
		t.Errorf("%+v", r)
	}
	t.set(driver.Write{Name: "a", Delete: true})
	t.set(driver.Write{Name: "a", If: driver.Absent, Request: "r4"}) // what was refused is judged anew
}

// kvRequestedDeletions: a deletion that found nothing is remembered under its request: repeated, it leaves alone what
// was written since.
func kvRequestedDeletions(t *T) {
	for i, w := range []driver.Write{{Delete: true}, {Delete: true, If: driver.Absent}} {
		w.Name, w.Request = fmt.Sprint("a", i), fmt.Sprint("d", i)
		if r := t.set(w); r.Revision != 0 {
			t.Errorf("the deletion of nothing gives %+v", r)
		}
		since := t.set(driver.Write{Name: w.Name, Data: []byte("since")})
		if r := t.set(w); r.Revision != 0 {
			t.Errorf("repeated it gives %+v", r)
		}
		t.holds(w.Name, "since", since)
	}
}

// kvPages: in order of names, each once, by prefix, to the end.
func kvPages(t *T) {
	var ws []driver.Write
	for i := range 250 {
		ws = append(ws, driver.Write{Name: fmt.Sprintf("n/%03d", (i*7)%250), Data: []byte{byte(i)}})
	}
	for _, name := range []string{"m", "n", "n0", "n/", "o", "中/1", "中/2"} {
		ws = append(ws, driver.Write{Name: name})
	}
	for i, r := range t.kv().Apply(t.ctx(), bucket, driver.KVOptions{}, ws...) {
		t.ok(r.Err, "write of "+ws[i].Name)
	}
	var got []string
	q := driver.KVQuery{Bucket: bucket, Prefix: "n/", Limit: 100}
	for pages := 0; ; pages++ {
		page, err := t.kv().List(t.ctx(), q)
		t.ok(err, "List")
		for _, v := range page.Values {
			got = append(got, v.Name)
		}
		if q.After = page.Next; page.Next == "" {
			t.equal(pages, 2, "pages before the last")
			break
		}
	}
	want := []string{"n/"}
	for i := range 250 {
		want = append(want, fmt.Sprintf("n/%03d", i))
	}
	t.equal(got, want, "names of a prefix")
	page, err := t.kv().List(t.ctx(), driver.KVQuery{Bucket: bucket, Prefix: "中/"})
	t.ok(err, "List")
	if len(page.Values) != 2 || page.Values[0].Name != "中/1" {
		t.Errorf("%+v", page)
	}
	page, err = t.kv().List(t.ctx(), driver.KVQuery{Bucket: "nothing"})
	if err != nil || len(page.Values) != 0 || page.Next != "" {
		t.Errorf("an empty bucket: %+v %v", page, err)
	}
}

// kvBucketsAreApart: the same name in many buckets is as many values.
func kvBucketsAreApart(t *T) {
	const n = 200
	for i := range n {
		r := t.kv().Apply(t.ctx(), fmt.Sprint("b", i), driver.KVOptions{},
			driver.Write{Name: "a", Data: []byte(fmt.Sprint(i)), If: driver.Absent})[0]
		t.ok(r.Err, "write")
	}
	for i := range n {
		vs, err := t.kv().Get(t.ctx(), fmt.Sprint("b", i), "a")
		t.ok(err, "Get")
		t.equal(string(vs[0].Data), fmt.Sprint(i), "value of bucket "+fmt.Sprint(i))
	}
}

// kvInput: what cannot be is refused with a hint, and nothing is changed.
func kvInput(t *T) {
	long := strings.Repeat("x", driver.MaxValueName+1)
	for name, w := range map[string]driver.Write{
		"no name": {}, "a long name": {Name: long}, "a name that is no text": {Name: "a\x00b"},
		"a short TTL":    {Name: "a", TTL: time.Millisecond},
		"a negative TTL": {Name: "a", TTL: -time.Hour}, "a deletion with data": {Name: "a", Delete: true, Data: []byte("x")},
		"a fence without a name":   {Name: "a", Fence: &driver.Fence{Epoch: 1}},
		"a fence without an epoch": {Name: "a", Fence: &driver.Fence{Name: "b"}},
		"a long request":           {Name: "a", Request: long},
	} {
		r := t.apply(w)
		t.refusedWith(r.Err, driver.ErrInvalid, name)
	}
	t.refusedWith(t.apply(driver.Write{Name: "a", Data: make([]byte, driver.MaxValue+1)}).Err, driver.ErrTooLarge,
		"a large value")
	t.set(driver.Write{Name: "large", Data: make([]byte, driver.MaxValue)})
	for _, b := range []string{"", "a b", strings.Repeat("x", driver.MaxNameLen+1)} {
		t.refusedWith(t.kv().Apply(t.ctx(), b, driver.KVOptions{}, driver.Write{Name: "a"})[0].Err, driver.ErrInvalid,
			"bucket "+b)
		_, err := t.kv().Get(t.ctx(), b, "a")
		t.refusedWith(err, driver.ErrInvalid, "Get of bucket "+b)
		_, err = t.kv().List(t.ctx(), driver.KVQuery{Bucket: b})
		t.refusedWith(err, driver.ErrInvalid, "List of bucket "+b)
		_, err = t.kv().Wait(t.ctx(), b, "a", 0)
		t.refusedWith(err, driver.ErrInvalid, "Wait in bucket "+b)
		_, _, err = t.kv().Changes(t.ctx(), b, 0)
		t.refusedWith(err, driver.ErrInvalid, "Changes of bucket "+b)
	}
	_, err := t.kv().List(t.ctx(), driver.KVQuery{Bucket: bucket, Limit: -1})
	t.refusedWith(err, driver.ErrInvalid, "a negative limit")
	t.refusedWith(t.kv().Apply(t.ctx(), bucket, driver.KVOptions{Level: driver.Replicated(99)},
		driver.Write{Name: "a"})[0].Err, driver.ErrUnsupported, "a level that is not given")
	t.absent("a")
}
