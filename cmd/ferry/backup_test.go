package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ferrymq/ferry/driver/disk"
)

// spoil flips a bit in the middle of every table and log in a directory: spoil copy/data
func spoil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: spoil directory")
	}
	for _, ending := range []string{"*.sst", "*.log"} {
		names, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), ending))
		ts.Check(err)
		for _, name := range names {
			data, err := os.ReadFile(name)
			ts.Check(err)
			if len(data) == 0 {
				continue
			}
			data[len(data)/2] ^= 1
			ts.Check(os.WriteFile(name, data, 0o600))
		}
	}
}

// TestDirectoryInUse: neither backup nor doctor touch a directory that a process owns, and both say which.
func TestDirectoryInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner, err := disk.New(context.Background(), disk.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t)
	d.env["FERRY_BROKER"] = "disk://" + filepath.Join(dir, "store")
	inUse := fmt.Sprintf("store is in use by process %d", os.Getpid())
	r := d.fails(exitFailure, inUse, "backup", "--to", filepath.Join(dir, "copy"))
	d.has(r.err, "docs/disk.md")
	d.fails(exitFailure, inUse, "doctor")
	if _, err := os.Stat(filepath.Join(dir, "copy")); !os.IsNotExist(err) {
		t.Errorf("something was made: %v", err)
	}
	if err := owner.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.has(d.ok("backup", "--to", filepath.Join(dir, "copy")), "every checksum is right")
}
