package disk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// asNobody runs f without the rights of this user on files, if it is the superuser.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlock it: the thread ends with the goroutine
		if err := syscall.Setfsuid(65534); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// TestNoRights: a directory that belongs to somebody else, or may not be written, is refused and left as it is.
func TestNoRights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		mode os.FileMode
		old  bool // contains a store
		sub  string
	}{
		{"unreadable", 0o000, true, ""},
		{"unwritable, with a store", 0o500, true, ""},
		{"unwritable, empty", 0o500, false, ""},
		{"unwritable parent", 0o500, false, "new/store"},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		prepare(t, dir, c.old, c.mode)
		path := filepath.Join(dir, c.sub)
		asNobody(t, func() {
			d, err := New(context.Background(), Options{Dir: path})
			if err == nil {
				t.Errorf("%s: it was opened: %v", c.name, d.Close(ctx))
				return
			}
			refused(t, c.name, err, driver.ErrNotApplied, path)
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "belongs to you") {
				t.Errorf("%s: %v does not say why", c.name, err)
			}
			if _, err := Check(ctx, Options{Dir: path}); err == nil {
				t.Errorf("%s: it was checked", c.name)
			}
		})
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
			t.Errorf("%s: something was made", c.name)
		}
		if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || !c.old && len(names) > 0 {
			t.Errorf("%s: %v, %v", c.name, names, err)
		}
	}
}

func prepare(t *testing.T, dir string, old bool, mode os.FileMode) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if old {
		if err := open(t, Options{Dir: dir}).Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
}
