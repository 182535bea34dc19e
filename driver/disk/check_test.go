package disk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
)

// wrong returns what Check found wrong, as one text.
func wrong(t *testing.T, o Options) string {
	t.Helper()
	findings, err := Check(ctx, o)
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	var texts []string
	for _, f := range findings {
		switch {
		case f.Severity == driver.SeverityOK:
		case f.Severity != driver.SeverityError || f.Hint == "":
			t.Errorf("%+v", f)
		default:
			texts = append(texts, f.Subject+": "+f.Text)
		}
	}
	if len(texts) == 0 && len(findings) == 0 {
		t.Error("Check says nothing")
	}
	return strings.Join(texts, "\n")
}

// checkedStore is a store with messages in all states. With flushed it was closed and they are in tables, otherwise its
// process was killed and they are in the log.
func checkedStore(t *testing.T, flushed bool) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewCrashableMem()
	d := open(t, Options{Dir: "/store", fs: mem})
	publishN(t, d, 40)
	ms := []*driver.Message{
		{ID: "later", Topic: "jobs", Delay: 1 << 40, Body: []byte("x")},
		{ID: "held", Topic: "jobs", Delay: driver.Hold},
		{ID: "mine", Topic: "other", OwnID: true, DedupID: "once", DedupWindow: 1 << 40},
	}
	_, err := d.Publish(ctx, ms, driver.PublishOptions{})
	s, serr := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "jobs", Instance: "test"})
	if err := errors.Join(err, serr, d.StoreRaw(ctx, "other", []byte("rubbish"))); err != nil {
		t.Fatal(err)
	}
	ds, err := s.Receive(ctx, 5)
	if err != nil {
		t.Fatal(err)
	}
	errs := s.Settle(ctx, []driver.Settlement{{Delivery: ds[0]}, {Delivery: ds[1], Outcome: driver.Dead},
		{Delivery: ds[2], Outcome: driver.Retry, After: 1 << 40}, {Delivery: ds[3], Outcome: driver.Drop}})
	other, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "other", Instance: "test"})
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Receive(ctx, 5); err != nil { // which finds the rubbish
		t.Fatal(err)
	}
	killed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if !flushed {
		return killed
	}
	return mem
}

func TestCheckFindsNothing(t *testing.T) {
	t.Parallel()
	for _, flushed := range []bool{false, true} {
		o := Options{Dir: "/store", fs: checkedStore(t, flushed)}
		if text := wrong(t, o); text != "" {
			t.Errorf("flushed %v: %s", flushed, text)
		}
	}
	dir := filepath.Join(t.TempDir(), "store")
	d := open(t, Options{Dir: dir})
	publishN(t, d, 3)
	_, err := Check(ctx, Options{Dir: dir})
	refused(t, "Check of a store in use", err, driver.ErrConflict, fmt.Sprintf("in use by process %d", os.Getpid()))
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	if text := wrong(t, Options{Dir: dir}); text != "" {
		t.Error(text)
	}
	if after := tree(t, dir); after != before {
		t.Errorf("Check changed the directory: %s, before %s", after, before)
	}
	_, err = Check(ctx, Options{Dir: filepath.Join(dir, "nothing")})
	refused(t, "Check of nothing", err, driver.ErrNotFound, "no store")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Check(ended, Options{Dir: dir}); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestCheckFindsDamage changes records behind the back of everybody.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	key := func(kind string, seq byte) []byte {
		k := append([]byte{0, 0, 0, 1}, kind[0])
		if kind == "t" {
			return k
		}
		return append(append(k, 0, 0, 0, 0, 0, 0, 0, seq), kind[1:]...)
	}
	flip := func(v []byte) []byte { v[len(v)/2] ^= 1; return v }
	for _, c := range []struct {
		name   string
		key    []byte
		change func([]byte) []byte
		says   []string
	}{
		{"a body", key("m", 9), flip, []string{`topic "jobs": message 0-9 cannot be decoded`}},
		{"a message is missing", key("m", 9), nil, []string{"group default of topic jobs: 40 received, but 39 ="}},
		{"its state is left", key("m", 2), nil, []string{"message 0-2 has a state, but is not there",
			"40 received, but 39 ="}},
		{"a state", key("ms", 2), flip, []string{"the state of message 0-2 is damaged"}},
		{"a topic", key("t", 0), flip, []string{"topic number 1: its record is damaged"}},
		{"no topic", key("t", 0), nil, []string{"topic number 1: its record is damaged: it is missing"}},
		{"a foreign key", key("x", 1), func([]byte) []byte { return []byte("x") }, []string{"is not one of this program"}},
		{"beyond the end", key("m", 99), func([]byte) []byte { return []byte("x") },
			[]string{"message 0-99 lies outside of the log", "0-99 cannot be decoded", "40 received, but 41"}},
	} {
		mem := checkedStore(t, true)
		changeRecord(t, mem, c.key, c.change)
		text := wrong(t, Options{Dir: "/store", fs: mem})
		for _, part := range c.says {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is missing in:\n%s", c.name, part, text)
			}
		}
	}
}

func changeRecord(t *testing.T, mem *vfs.MemFS, key []byte, change func([]byte) []byte) {
	t.Helper()
	db, err := pebble.Open("/store/data", &pebble.Options{FS: mem, Logger: &fatalLogger{}})
	if err != nil {
		t.Fatal(err)
	}
	var own []byte
	if value, closer, err := db.Get(key); err == nil {
		own = slices.Clone(value)
		err = closer.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	if change == nil {
		err = db.Delete(key, pebble.Sync)
	} else {
		err = db.Set(key, change(own), pebble.Sync)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedFiles flips bits of files and cuts them off: nothing panics or hangs, Check and New agree, and if they
// find nothing then nothing is missing.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	found := 0
	rounds := 200 / slowdown
	for i := range rounds {
		mem := checkedStore(t, i%4 > 0)
		name := hurt(t, mem, rng)
		text := wrong(t, Options{Dir: "/store", fs: mem})
		d, err := New(context.Background(), Options{Dir: "/store", fs: mem})
		switch {
		case err != nil:
			found++
			var e *driver.Error
			if !errors.As(err, &e) || e.Hint == "" {
				t.Errorf("%s: %v has no hint", name, err)
			}
			if text == "" {
				t.Errorf("%s: Check finds nothing, and New fails: %v", name, err)
			}
			continue
		case text == "" && !complete(d):
			t.Errorf("%s: neither Check nor New found anything, but something is missing", name)
		}
		if err := d.Close(ctx); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
	if found < rounds/4 {
		t.Errorf("only %d of %d damages were found", found, rounds)
	}
}

// complete reports whether everything of checkedStore is there, but what was published last.
func complete(d *Driver) bool {
	jobs, err := d.Stats(ctx, "jobs")
	return err == nil && jobs.Published >= 40 && len(jobs.Unbalanced()) == 0
}

// hurt flips a bit of a file of Pebble, or cuts it off, and says what it did.
func hurt(t *testing.T, mem *vfs.MemFS, rng *rand.Rand) string {
	t.Helper()
	names, err := mem.List("/store/data")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		return !strings.HasSuffix(n, ".sst") && !strings.HasSuffix(n, ".log") && !strings.HasPrefix(n, "MANIFEST")
	})
	for {
		name := "/store/data/" + names[rng.IntN(len(names))]
		data, err := mem.UnsafeGetFileDataBuffer(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 {
			continue
		}
		at := rng.IntN(len(data))
		if rng.IntN(3) > 0 || strings.HasSuffix(name, ".log") { // a log that is cut off looks unfinished
			data[at] ^= 1 << rng.IntN(8)
			return fmt.Sprintf("%s, bit at %d of %d", name, at, len(data))
		}
		f, err := mem.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		own := slices.Clone(data[:at])
		if _, err := f.Write(own); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s, cut off at %d of %d", name, at, len(data))
	}
}
