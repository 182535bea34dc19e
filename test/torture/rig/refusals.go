package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ferrymq/ferry/internal/redistest"
)

// Actions after which a Redis server answers, and refuses.
const (
	busy    = "busy"
	misconf = "misconf"
)

// occupy has the server run a script that does not end. It answers others with BUSY after 50 ms.
func occupy(n *redistest.Server) (chan error, error) {
	if _, err := n.Command("CONFIG", "SET", "lua-time-limit", "50"); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		_, err := n.Command("EVAL", "while true do end", "0")
		if refused := redistest.ReplyError(""); errors.As(err, &refused) {
			err = nil // that it was killed
		}
		done <- err
	}()
	return done, nil
}

// free ends the script, once it runs.
func free(n *redistest.Server, done chan error) error {
	for {
		_, err := n.Command("SCRIPT", "KILL")
		select {
		case ended := <-done:
			return ended
		case <-time.After(10 * time.Millisecond):
		}
		if refused := redistest.ReplyError(""); err != nil && !errors.As(err, &refused) {
			return err
		}
	}
}

// snapshot is the file that a server writes, by its own account.
func snapshot(n *redistest.Server) (string, error) {
	reply, err := n.Command("CONFIG", "GET", "dir")
	if err != nil || len(reply.List) != 2 {
		return "", fmt.Errorf("the directory of %s: %v, %w", n, reply, err)
	}
	return filepath.Join(reply.List[1].Text, "dump.rdb"), nil
}

// spoilSnapshot puts a directory in the place of the snapshot, and lets the server find out.
func spoilSnapshot(n *redistest.Server) error {
	path, err := snapshot(n)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Join(path, "in-the-way"), 0o700)); err != nil {
		return err
	}
	if _, err := n.Command("CONFIG", "SET", "save", "3600 1"); err != nil {
		return err
	}
	return saved(n, "err")
}

// mendSnapshot makes room, and the server accepts writes again.
func mendSnapshot(n *redistest.Server) error {
	path, err := snapshot(n)
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err == nil {
		err = saved(n, "ok")
	}
	if err == nil {
		_, err = n.Command("CONFIG", "SET", "save", "")
	}
	return err
}

// saved has a snapshot written until it ends like this.
func saved(n *redistest.Server, status string) error {
	for range 500 {
		if _, err := n.Command("BGSAVE", "SCHEDULE"); err != nil && !strings.Contains(err.Error(), "in progress") {
			return err
		}
		<-time.After(10 * time.Millisecond)
		reply, err := n.Command("INFO", "persistence")
		if err != nil {
			return err
		}
		if strings.Contains(reply.Text, "rdb_bgsave_in_progress:0") &&
			strings.Contains(reply.Text, "rdb_last_bgsave_status:"+status) {
			return nil
		}
	}
	return fmt.Errorf("the snapshots of %s do not become %s", n, status)
}
