package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/ferrymq/ferry/test/torture/schedule"
)

// smallDisk is a file system of its own for a store: in memory, where it can be filled up, or in a file, where it can
// be made to stand still.
type smallDisk struct {
	dir    string
	image  string // the file; empty for one in memory
	frozen bool
}

const (
	smallDiskBytes = 128 << 20
	reserveBytes   = 16 << 20
	freezableBytes = 512 << 20
)

// diskActions are empty where nothing can be mounted.
func diskActions() schedule.Actions {
	if os.Geteuid() != 0 {
		return nil
	}
	actions := schedule.Actions{
		"fill": {Lasting: true, Value: "the bytes left free",
			Help: fmt.Sprintf("the disk fills up; the store keeps %d in reserve", reserveBytes)},
	}
	if _, err := exec.LookPath("mkfs.ext4"); err == nil {
		actions["stall-disk"] = schedule.Action{Lasting: true,
			Help: "the file system is frozen: whoever writes or syncs waits"}
	}
	return actions
}

// mountFreezable puts a file system in a file beside dir: one in memory cannot be frozen.
func mountFreezable(dir string) (*smallDisk, error) {
	d := &smallDisk{dir: dir, image: dir + ".image"}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Truncate(d.image, freezableBytes); err != nil {
		return nil, err
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-F", d.image}, {"mount", "-o", "loop", d.image, dir}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("%v: %w: %s", command, err, out), os.Remove(d.image))
		}
	}
	return d, nil
}

func mountSmallDisk(dir string) (*smallDisk, error) {
	if err := syscall.Mount("ferry-torture", dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDiskBytes)); err != nil {
		return nil, fmt.Errorf("mounting a small disk on %s: %w", dir, err)
	}
	return &smallDisk{dir: dir}, nil
}

// thaw comes first: who waits for a frozen disk cannot even be killed.
func (d *smallDisk) thaw() error {
	if !d.frozen {
		return nil
	}
	d.frozen = false
	return d.control(thaw)
}

func (d *smallDisk) unmount() error {
	err := syscall.Unmount(d.dir, syscall.MNT_DETACH)
	if d.image != "" {
		err = errors.Join(err, os.Remove(d.image))
	}
	return err
}

// Requests of ioctl to a file system, as linux/fs.h has them.
const (
	freeze = 0xC0045877 // FIFREEZE
	thaw   = 0xC0045878 // FITHAW
)

func (d *smallDisk) control(request uintptr) error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, 0); code != 0 {
		return fmt.Errorf("freezing or thawing %s: %w", d.dir, code)
	}
	return nil
}

func (d *smallDisk) ballast() string { return filepath.Join(d.dir, "ballast") }

func (d *smallDisk) begin(s schedule.Step, _ int) (string, error) {
	if s.Action == "stall-disk" {
		err := d.control(freeze)
		d.frozen = err == nil
		return "", err
	}
	left, err := strconv.ParseInt(s.With, 10, 64)
	if err != nil || left < 0 {
		return "", fmt.Errorf("fill with %q: it takes a number of bytes", s.With)
	}
	return "", d.fill(left)
}

func (d *smallDisk) fill(left int64) error {
	f, err := os.Create(d.ballast())
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	chunk := make([]byte, 64<<10)
	for {
		free, err := d.free()
		if err != nil {
			return err
		}
		if free <= left {
			return nil
		}
		if _, err := f.Write(chunk[:min(int64(len(chunk)), free-left)]); err != nil {
			if errors.Is(err, syscall.ENOSPC) {
				return nil
			}
			return err
		}
	}
}

func (d *smallDisk) free() (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}

func (d *smallDisk) end(_ context.Context, s schedule.Step, _ int) error {
	if s.Action == "stall-disk" {
		return d.thaw()
	}
	return os.Remove(d.ballast())
}
