package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// smallDevice is a device that can be filled up.
type smallDevice struct {
	*testing.T
	dir string
}

func newSmallDevice(t *testing.T) *smallDevice {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small device")
	}
	dir := t.TempDir()
	if err := syscall.Mount("ferry-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", 256<<20)); err != nil {
		t.Skipf("a small device cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return &smallDevice{t, dir}
}

func (d *smallDevice) store() string { return filepath.Join(d.dir, "store") }

// fill leaves so many bytes free, as somebody else would.
func (d *smallDevice) fill(left int64) {
	d.Helper()
	f, err := os.Create(filepath.Join(d.dir, "hog"))
	if err != nil {
		d.Fatal(err)
	}
	for {
		var s syscall.Statfs_t
		if err := syscall.Statfs(d.dir, &s); err != nil {
			d.Fatal(err)
		}
		n := min(1<<20, int64(s.Bavail)*s.Bsize-left)
		if n <= 0 {
			break
		}
		if _, err := f.Write(make([]byte, n)); err != nil {
			d.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		d.Fatal(err)
	}
}

func (d *smallDevice) free() {
	d.Helper()
	if err := os.Remove(filepath.Join(d.dir, "hog")); err != nil {
		d.Fatal(err)
	}
}

// oneKind demands that an error is of this kind and of no other.
func oneKind(t *testing.T, what string, err, kind error) {
	t.Helper()
	for _, k := range []error{driver.ErrNotApplied, driver.ErrUnknown, driver.ErrFull, driver.ErrTooLarge,
		driver.ErrLeaseLost, driver.ErrNotFound,
		driver.ErrConflict, driver.ErrInvalid, driver.ErrUnsupported, driver.ErrClosed, driver.ErrRefused} {
		if errors.Is(err, k) != errors.Is(k, kind) {
			t.Errorf("%s: %v; it should be %v, and is it %v: %v", what, err, kind, k, errors.Is(err, k))
		}
	}
}

// TestOpenOnAFullDevice: without a byte left neither a new store nor an old one can be opened; what is stored stays.
func TestOpenOnAFullDevice(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprint("with a store: ", old), func(t *testing.T) {
			dev := newSmallDevice(t)
			if old {
				d := open(t, Options{Dir: dev.store(), Reserve: 1})
				some(t, d, 100)
				if err := d.Close(ctx); err != nil {
					t.Fatal(err)
				}
			}
			dev.fill(0)
			_, err := New(context.Background(), Options{Dir: dev.store()})
			refused(t, "opening on a full device", err, driver.ErrFull, "cannot be opened")
			oneKind(t, "opening on a full device", err, driver.ErrFull)
			dev.free()
			d := open(t, Options{Dir: dev.store(), Reserve: 1})
			if !old {
				some(t, d, 100)
			}
			if n := takeAll(t, d, "jobs"); n != 100 {
				t.Errorf("%d of 100 messages are there", n)
			}
			if err := d.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDrainOnAFullDevice: what is there can be received and settled when somebody else has filled the device: a part of
// the reserve is really there. It can be closed, and nothing comes back.
func TestDrainOnAFullDevice(t *testing.T) {
	t.Parallel()
	dev := newSmallDevice(t)
	d := open(t, Options{Dir: dev.store(), Reserve: 64 << 20})
	some(t, d, 20_000)
	dev.fill(0)
	time.Sleep(lookEvery) // a look at the disk is not repeated before
	_, err := d.Publish(ctx, []*driver.Message{{ID: "late", Topic: "jobs"}}, driver.PublishOptions{})
	refused(t, "a publish to a full device", err, driver.ErrFull, "less than the reserve")
	if n := takeAll(t, d, "jobs"); n != 20_000 {
		t.Errorf("%d of 20,000 messages were settled", n)
	}
	if err := d.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	dev.free()
	d = open(t, Options{Dir: dev.store(), Reserve: 1})
	if n := takeAll(t, d, "jobs"); n != 0 {
		t.Errorf("%d messages came back", n)
	}
	if err := d.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestFailedWriteOnADevice publishes until the device is full: the store stops, each error is of one kind, it can be
// closed, and with room again everything that was acknowledged is there.
func TestFailedWriteOnADevice(t *testing.T) {
	t.Parallel()
	dev := newSmallDevice(t)
	d := open(t, Options{Dir: dev.store(), Reserve: 1})
	dev.fill(4 << 20)
	var acked []string
	for {
		m := &driver.Message{ID: fmt.Sprint("m", len(acked)), Topic: "jobs", Body: make([]byte, 64<<10)}
		_, err := d.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{})
		if err != nil {
			if !errors.Is(err, driver.ErrFull) {
				oneKind(t, "the publish that failed", err, driver.ErrUnknown)
			}
			break
		}
		acked = append(acked, m.ID)
	}
	if d.store.Failure() == nil {
		t.Skip("the reserve was met exactly: no write failed")
	}
	_, err := d.Publish(ctx, []*driver.Message{{ID: "late", Topic: "jobs"}}, driver.PublishOptions{})
	oneKind(t, "a publish after it", err, driver.ErrClosed)
	_, err = d.Subscribe(ctx, driver.SubscribeOptions{Topic: "jobs", Instance: "i"})
	oneKind(t, "Subscribe after it", err, driver.ErrClosed)
	if err := d.Close(ctx); err == nil {
		t.Error("Close does not tell of the failed write")
	}
	if out := openElsewhere(t, dev.store()); !strings.HasPrefix(out, "full: ") {
		t.Errorf("opening while it is full: %s", out)
	}
	dev.free()
	d = open(t, Options{Dir: dev.store(), Reserve: 1})
	for _, id := range acked {
		if _, err := d.Get(ctx, driver.Target{Topic: "jobs", ID: id}); err != nil {
			t.Errorf("%s was acknowledged: %v", id, err)
		}
	}
	if err := d.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestOpenWhileTheLogDoesNotFit: what a killed process left in its log must be flushed, for which there is no room.
// That ends in an error, and nothing is lost.
func TestOpenWhileTheLogDoesNotFit(t *testing.T) {
	t.Parallel()
	dev := newSmallDevice(t)
	left := filepath.Join(t.TempDir(), "left")
	d := open(t, Options{Dir: left, Reserve: 1})
	body := make([]byte, 64<<10)
	for i := range 300 {
		for j := range body {
			body[j] = byte(i*j>>3 ^ j*j>>7 ^ i)
		}
		if _, err := d.Publish(ctx, []*driver.Message{{ID: fmt.Sprint("m", i), Topic: "jobs", Body: body}},
			driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	copyTree(t, left, dev.store())
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	dev.fill(1200 << 10)
	if out := openElsewhere(t, dev.store()); !strings.HasPrefix(out, "full: ") {
		t.Errorf("opening without room for its log: %s", out)
	}
	dev.free()
	d = open(t, Options{Dir: dev.store(), Reserve: 1})
	if n := takeAll(t, d, "jobs"); n != 300 {
		t.Errorf("%d of 300 messages are there", n)
	}
	if err := d.Close(ctx); err != nil {
		t.Error(err)
	}
}

// openDir tells a test binary that it is to open a store, and to say what happens.
const openDir = "FERRY_TEST_OPEN_DIR"

// openElsewhere opens a store in another process, where an attempt may leave goroutines behind.
func openElsewhere(t *testing.T, dir string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenElsewhere$", "-test.v=false", "-test.timeout=1m")
	c.Env = append(os.Environ(), openDir+"="+dir)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("the process that opens it ended: %v", err)
	}
	return string(out)
}

func TestOpenElsewhere(*testing.T) {
	dir := os.Getenv(openDir)
	if dir == "" {
		return
	}
	d, err := New(context.Background(), Options{Dir: dir})
	switch {
	case err == nil:
		fmt.Println("open", d.Close(ctx))
	case errors.Is(err, driver.ErrFull):
		fmt.Println("full:", err)
	default:
		fmt.Println("failed:", err)
	}
	os.Exit(0)
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		out, err := os.Create(filepath.Join(to, rel))
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return errors.Join(err, out.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
}
