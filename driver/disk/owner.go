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

// own takes the lock of the directory, and writes down who has it.
func (d *directory) own() error {
	if !d.real {
		return nil // Pebble's own lock is enough inside one process
	}
	name := filepath.Join(d.path, ownerName)
	f, err := privatefile.Open(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return d.errUnusable(err)
	}
	if err := d.take(f); err != nil {
		return err
	}
	if err := writeOwner(f); err != nil {
		_ = f.Close()
		return d.errUnusable(err)
	}
	d.owner = locked{f}
	return nil
}

// locked is a file whose lock ends when it is closed.
type locked struct{ *os.File }

// Close gives the lock up.
func (l locked) Close() error { return unlock(l.File) }

// take locks the file of the owner, or closes it and says who has locked it.
func (d *directory) take(f *os.File) error {
	err := tryLock(f)
	if err == nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(f, 32))
	_ = f.Close()
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("the store in %s is in use by process %s", d.path,
		ownerPID(string(text))),
		"stop that process, or reach it over the network: one process owns a directory. It can make a copy itself, while "+
			"it runs: docs/disk.md", err)
}

func writeOwner(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func ownerPID(text string) string {
	if pid := strings.TrimSpace(text); pid != "" && strings.Trim(pid, "0123456789") == "" {
		return pid
	}
	return "(unknown)"
}
