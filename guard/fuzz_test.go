package guard_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
)

// FuzzJournal opens any file: it is read, or refused with a hint, and what was opened can be written on.
func FuzzJournal(f *testing.F) {
	dir := f.TempDir()
	d, err := guard.OpenDir(dir, guard.DirOptions{})
	if err != nil {
		f.Fatal(err)
	}
	block(f, d, "a")
	if err := d.Close(context.Background()); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, guard.JournalName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte("00000000 {}\n00000000 {}\n"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, guard.JournalName), text, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := guard.OpenDir(dir, guard.DirOptions{})
		var e *driver.Error
		if err != nil {
			if !errors.As(err, &e) || e.Hint == "" {
				t.Fatalf("%v has no hint", err)
			}
			return
		}
		before := len(blockedKeys(t, d))
		block(t, d, "fuzz")
		if err := d.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if after := len(blockedKeys(t, openDir(t, dir))); after < before || after > before+1 {
			t.Fatalf("%d keys were blocked, then %d", before, after)
		}
	})
}

// FuzzTemplate reads any template: it is refused with a hint, or gives a key.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"{key}", "{topic}/{header.tenant}", "{", "}{", "{header.}", "a{{key}}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := guard.Template(text)
		var e *driver.Error
		switch {
		case err != nil && (!errors.As(err, &e) || e.Hint == ""):
			t.Fatalf("%v has no hint", err)
		case err == nil && !strings.ContainsAny(text, "{}") && key(&ferry.Message{}) != text:
			t.Fatalf("%q became %q", text, key(&ferry.Message{}))
		}
	})
}
