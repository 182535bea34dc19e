package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ferrymq/ferry/driver"
)

// refused demands an error of a kind that says something and what to do next.
func refused(t *testing.T, what string, err, kind error, says string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v; want %v that says %q", what, err, kind, says)
		return
	}
	var e *driver.Error
	if !errors.As(err, &e) || e.Hint == "" {
		t.Errorf("%s: %v has no hint", what, err)
	}
}

func TestSecondOwnerIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, Options{Dir: dir})
	_, err := New(context.Background(), Options{Dir: dir})
	refused(t, "a second owner", err, driver.ErrConflict, fmt.Sprintf("in use by process %d", os.Getpid()))
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	d = open(t, Options{Dir: dir})
	if err := errors.Join(d.Close(ctx), d.Close(ctx)); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestBadDirectories(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(dir string) Options
		kind error
		says string
	}{
		{"none", func(string) Options { return Options{} }, driver.ErrInvalid, "no directory"},
		{"negative size", func(dir string) Options { return Options{Dir: dir, Reserve: -1} }, driver.ErrInvalid, "negative"},
		{"negative body", func(dir string) Options { return Options{Dir: dir, MaxBody: -1} }, driver.ErrInvalid, "negative"},
		{"negative bound", func(dir string) Options { return Options{Dir: dir, MaxMessages: -1} }, driver.ErrInvalid,
			"negative"},
		{"negative cache", func(dir string) Options { return Options{Dir: dir, CacheBytes: -1} }, driver.ErrInvalid,
			"negative"},
		{"negative window", func(dir string) Options { return Options{Dir: dir, Window: -1} }, driver.ErrInvalid, "negative"},
		{"negative interval", func(dir string) Options { return Options{Dir: dir, Sync: Interval(-1)} }, driver.ErrInvalid,
			"negative"},
		{"a file", func(dir string) Options {
			put(t, filepath.Join(dir, "f"), "x")
			return Options{Dir: filepath.Join(dir, "f")}
		}, driver.ErrInvalid, "is not a directory"},
		{"below a file", func(dir string) Options {
			put(t, filepath.Join(dir, "f"), "x")
			return Options{Dir: filepath.Join(dir, "f", "store")}
		}, driver.ErrNotApplied, "cannot be opened"},
		{"foreign", func(dir string) Options {
			put(t, filepath.Join(dir, "thesis.doc"), "x")
			return Options{Dir: dir}
		}, driver.ErrInvalid, "thesis.doc"},
		{"newer", func(dir string) Options {
			put(t, filepath.Join(dir, formatName), formatMagic+"99\n")
			return Options{Dir: dir}
		}, driver.ErrUnsupported, "format version 99"},
		{"rubbish", func(dir string) Options {
			put(t, filepath.Join(dir, formatName), "\x00rubbish")
			return Options{Dir: dir}
		}, driver.ErrInvalid, "no format of this broker"},
	} {
		dir := t.TempDir()
		o := c.make(dir)
		before := tree(t, dir)
		_, err := New(context.Background(), o)
		refused(t, c.name, err, c.kind, c.says)
		if _, err := Check(ctx, o); err == nil {
			t.Errorf("%s: Check finds nothing wrong", c.name)
		}
		if err := Backup(ctx, o, filepath.Join(dir, "..", "copy")); err == nil {
			t.Errorf("%s: it can be copied", c.name)
		}
		if after := tree(t, dir); after != before {
			t.Errorf("%s: the directory was changed: %s, before %s", c.name, after, before)
		}
	}
}

// TestReadOnlyFileSystem: neither a new store nor an old one can be opened, and the error says why.
func TestReadOnlyFileSystem(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	if err := open(t, Options{Dir: "/old", fs: mem}).Close(ctx); err != nil {
		t.Fatal(err)
	}
	before := mem.String()
	readOnly := newFaultFS(mem, func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.EROFS
		}
		return nil
	})
	for _, dir := range []string{"/new", "/old"} {
		_, err := New(context.Background(), Options{Dir: dir, fs: readOnly})
		refused(t, "a read-only file system", err, driver.ErrNotApplied, "the store in "+dir+" cannot be opened: ")
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%v does not say why", err)
		}
	}
	if text := wrong(t, Options{Dir: "/old", fs: readOnly}); text != "" {
		t.Errorf("Check needs to write: %s", text)
	}
	if after := mem.String(); after != before {
		t.Errorf("something was changed: %s, before %s", after, before)
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tree lists what is in a directory, with modes.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			info, _ := e.Info()
			fmt.Fprintf(&b, "%s %v %d; ", path, info.Mode(), info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func publishN(t testing.TB, d *Driver, n int) {
	t.Helper()
	ms := make([]*driver.Message, n)
	for i := range ms {
		ms[i] = &driver.Message{ID: fmt.Sprint("n", i), Topic: "jobs", Body: []byte(strings.Repeat("x", 200))}
	}
	if _, err := d.Publish(ctx, ms, driver.PublishOptions{}); err != nil {
		t.Fatalf("Publish: %v", err)
	}
}

// takeAll consumes what is ready, and returns how much that was.
func takeAll(t testing.TB, d *Driver, topic string) int {
	t.Helper()
	st, err := d.Stats(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for n < int(st.Groups[0].Ready) {
		ds, err := s.Receive(ctx, 500)
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		ss := make([]driver.Settlement, len(ds))
		for i, x := range ds {
			ss[i].Delivery = x
		}
		if err := errors.Join(s.Settle(ctx, ss)...); err != nil {
			t.Fatalf("Settle: %v", err)
		}
		n += len(ds)
	}
	return n
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Dir: t.TempDir(), Reserve: 1})
	fs, err := d.Diagnose(ctx)
	if err != nil || len(fs) != 5 {
		t.Errorf("%+v, %v", fs, err)
	}
	for _, f := range fs {
		if f.Severity == driver.SeverityError || f.Severity == driver.SeverityUnknown {
			t.Errorf("%+v", f)
		}
	}
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
