// Package spooldisk opens a spool whose local store is a directory, and shares one root between processes: each has a
// directory of its own below it, takes over what processes that died have left, and begins with what its own last life
// left.
//
//	root/0001   a store of driver/disk, locked by the process that has it
//	root/0002
package spooldisk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/internal/privatefile"
	"github.com/ferrymq/ferry/spool"
)

// Options of a spool in a directory. Only Root is required.
type Options struct {
	// Root holds a directory for each process. It is made if it does not exist, readable by its owner only. Required.
	Root string
	// Spool are the options of the spool itself. Orphan is set here.
	Spool spool.Options
	// Disk are those of the local store: Reserve and Sync above all. Dir and MaxBody are set here.
	Disk disk.Options
}

// overhead is how much larger than the broker's bodies those of the local store may be.
const overhead = 128 << 10

// maxSlots bounds the processes of a root.
const maxSlots = 9999

// Open returns a spool around the driver of a broker, which it owns from now on, unless there is an error. It takes the
// first directory below the root that nobody has, so that a process that starts again finds what it left.
func Open(ctx context.Context, broker driver.Driver, o Options) (*spool.Driver, error) {
	switch {
	case broker == nil:
		return nil, driver.NewError(driver.ErrInvalid, "a spool needs a broker", "open one first", nil)
	case o.Root == "":
		return nil, driver.NewError(driver.ErrInvalid, "no directory for the spool is given", "set Options.Root", nil)
	}
	if o.Spool.Logger == nil {
		o.Spool.Logger = slog.Default()
	}
	if o.Disk.Logger == nil {
		o.Disk.Logger = slog.New(slog.DiscardHandler) // a spool is opened often and quietly; its trouble is told by the spool
	}
	o.Disk.MaxBody = broker.Capabilities().MaxBody + overhead
	r := &root{path: o.Root, disk: o.Disk, log: o.Spool.Logger, empty: map[string]bool{}, broken: map[string]bool{}}
	own, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	o.Spool.Orphan = r.orphan
	s, err := spool.New(ctx, broker, own, o.Spool)
	if err != nil {
		return nil, errors.Join(err, own.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// root is the directory that processes share.
type root struct {
	path string
	disk disk.Options
	log  *slog.Logger
	own  string

	mu     sync.Mutex
	empty  map[string]bool // directories that this process found empty, and nobody has opened since
	broken map[string]bool // and those that it could not open
}

// enter takes a directory: one that is there and nobody has, or a new one.
func (r *root) enter(ctx context.Context) (driver.Driver, error) {
	if err := os.MkdirAll(r.path, privatefile.DirMode); err != nil {
		return nil, driver.NewError(driver.ErrNotApplied, "the directory of the spool cannot be made",
			"check that "+r.path+" belongs to you, and can be written", err)
	}
	names, err := Slots(r.path)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		d, err := r.open(ctx, name)
		if errors.Is(err, driver.ErrConflict) {
			continue // somebody has it
		}
		if err != nil {
			return nil, err
		}
		r.own = name
		return d, nil
	}
	return r.create(ctx, names)
}

// create makes a directory. Others may do so at the same time.
func (r *root) create(ctx context.Context, names []string) (driver.Driver, error) {
	next := 1
	if len(names) > 0 {
		last, _ := strconv.Atoi(names[len(names)-1])
		next = last + 1
	}
	for ; next <= maxSlots; next++ {
		name := fmt.Sprintf("%04d", next)
		d, err := r.open(ctx, name)
		if errors.Is(err, driver.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r.own = name
		return d, nil
	}
	return nil, driver.NewError(driver.ErrFull, fmt.Sprintf("%s has no room for another process", r.path),
		"use another directory for the spool", nil)
}

func (r *root) open(ctx context.Context, name string) (*disk.Driver, error) {
	o := r.disk
	o.Dir = filepath.Join(r.path, name)
	return disk.New(ctx, o)
}

// Slots returns the directories of processes below a root, in order. None is there yet: none.
func Slots(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, driver.NewError(driver.ErrNotApplied, "the directory of the spool cannot be read",
			"check that "+path+" belongs to you", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && len(e.Name()) == 4 && strings.Trim(e.Name(), "0123456789") == "" {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// orphan opens the store of a process that died and left messages, or returns nil where there is none.
func (r *root) orphan(ctx context.Context) (driver.Driver, error) {
	names, err := Slots(r.path)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == r.own || r.known(name) {
			continue
		}
		d, err := r.open(ctx, name)
		switch {
		case errors.Is(err, driver.ErrConflict):
			continue
		case errors.Is(err, driver.ErrFull) || ctx.Err() != nil:
			return nil, err
		case err != nil: // it must not keep the others from being taken over
			r.log.Error("ferry: a directory of the spool cannot be opened; what waits in it stays there", "dir",
				filepath.Join(r.path, name), "error", err)
			r.give(name)
			continue
		}
		waiting, err := waits(ctx, d)
		if err == nil && waiting {
			return d, nil
		}
		r.note(name)
		if err = errors.Join(err, d.Close(context.WithoutCancel(ctx))); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// note remembers that a directory is empty.
func (r *root) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.empty[name] = true
}

// give gives a directory up, for the life of this process.
func (r *root) give(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken[name] = true
}

// known reports whether there is nothing to get from a directory: whoever opens one writes its pid, so that an empty
// one is known to be still so.
func (r *root) known(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken[name] || r.empty[name] && Owner(filepath.Join(r.path, name)) == os.Getpid()
}

// Owner returns the pid of the process that opened a directory last; zero when nobody knows.
func Owner(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "owner"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// waits reports whether a store has messages for a broker.
func waits(ctx context.Context, d driver.Driver) (bool, error) {
	infos, err := d.Topics(ctx)
	if err != nil {
		return false, err
	}
	for _, info := range infos {
		s, err := d.Stats(ctx, info.Topic)
		if err != nil || s.Messages > 0 {
			return err == nil, err
		}
	}
	return false, nil
}
