package disk

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/privatefile"
)

// own takes the lock of the directory, or says who has it. The file is opened with a flag.
func (d *directory) own(flag int) error {
	if !d.real {
		return nil // Pebble's own lock is enough inside one process
	}
	f, err := privatefile.Open(filepath.Join(d.path, ownerName), flag)
	if err != nil {
		return d.errUnusable(err)
	}
	if err = tryLock(f); err == nil {
		d.owner = f
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(f, 32))
	_ = f.Close()
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("the store in %s is in use by process %s", d.path,
		ownerPID(string(text))),
		"stop that process, or reach it over the network: one process owns a directory. It can make a copy itself, while "+
			"it runs: docs/disk.md", err)
}

// sign writes down who owns the directory.
func (d *directory) sign() error {
	if d.owner == nil {
		return nil
	}
	err := d.owner.Truncate(0)
	if err == nil {
		_, err = d.owner.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return err
}

func ownerPID(text string) string {
	if pid := strings.TrimSpace(text); pid != "" && strings.Trim(pid, "0123456789") == "" {
		return pid
	}
	return "(unknown)"
}
