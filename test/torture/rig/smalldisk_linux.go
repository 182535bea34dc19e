package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/ferrymq/ferry/test/torture/schedule"
)

// smallDisk is a file system in memory that can be filled up.
type smallDisk struct{ dir string }

const (
	smallDiskBytes = 128 << 20
	reserveBytes   = 16 << 20
)

// diskActions are empty where nothing can be mounted.
func diskActions() schedule.Actions {
	if os.Geteuid() != 0 {
		return nil
	}
	return schedule.Actions{
		"fill": {Lasting: true, Value: "the bytes left free", Help: fmt.Sprintf("the disk fills up; the store keeps %d in reserve", reserveBytes)},
	}
}

func mountSmallDisk(dir string) (*smallDisk, error) {
	if err := syscall.Mount("ferry-torture", dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDiskBytes)); err != nil {
		return nil, fmt.Errorf("mounting a small disk on %s: %w", dir, err)
	}
	return &smallDisk{dir: dir}, nil
}

func (d *smallDisk) unmount() error { return syscall.Unmount(d.dir, syscall.MNT_DETACH) }

func (d *smallDisk) ballast() string { return filepath.Join(d.dir, "ballast") }

func (d *smallDisk) begin(s schedule.Step, _ int) (string, error) {
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

func (d *smallDisk) end(context.Context, schedule.Step, int) error { return os.Remove(d.ballast()) }
