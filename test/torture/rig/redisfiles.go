package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ferrymq/ferry/internal/redistest"
)

// unsynced is how much of what a server wrote with appendfsync everysec may not have reached its disk.
const unsynced = time.Second

// cutPower kills a server, and takes from its file what it wrote during the last second: all that may not have been
// synced yet. What was written half may be there: a few bytes of it are left.
func cutPower(n *redistest.Server) error {
	file, err := aofFile(n)
	if err != nil {
		return err
	}
	then, err := os.Stat(file)
	if err != nil {
		return err
	}
	<-time.After(unsynced)
	n.Kill()
	now, err := os.Stat(file)
	if err != nil {
		return err
	}
	const torn = 40
	return os.Truncate(file, min(then.Size()+torn, now.Size()))
}

// aofFile is the file that a server appends to.
func aofFile(n *redistest.Server) (string, error) {
	reply, err := n.Command("CONFIG", "GET", "dir")
	if err != nil || len(reply.List) != 2 {
		return "", errors.Join(fmt.Errorf("the directory of %s: %v", n, reply), err)
	}
	files, err := filepath.Glob(filepath.Join(reply.List[1].Text, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		return "", errors.Join(fmt.Errorf("%s appends to %d files", n, len(files)), err)
	}
	return files[0], nil
}

// stepClock sets the clock of all servers.
func (s *redisServers) stepClock(offset string) error {
	d, err := time.ParseDuration(offset)
	if err != nil {
		return fmt.Errorf("the clock cannot be set by %q: it takes a duration", offset)
	}
	if s.clock == nil {
		return errors.New("the server has the clock of the machine")
	}
	return s.clock.Set(d)
}
