package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestServeRefuses: what keeps a server from running is told with an exit code and a hint.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	d.fails(exitFailure, "cannot listen at", "serve", "--broker", "memory", "--listen", taken.Addr().String())

	unreadable := map[string]string{"a directory": t.TempDir()}
	if os.Geteuid() != 0 { // who may read everything
		unreadable["a private file"] = filepath.Join(t.TempDir(), "ferry.yaml")
		if err := os.WriteFile(unreadable["a private file"], []byte("broker: memory\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
	for what, path := range unreadable {
		t.Log(what)
		d.fails(exitUsage, "the configuration cannot be read", "config", "check", path)
		d.fails(exitUsage, "the configuration cannot be read", "serve", "--config", path)
	}
}
