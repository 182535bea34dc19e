package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/open"
)

// appStage is for a broker that only one process can own: that process has the producers and the consumers in it, and
// is killed as a whole. Nobody can look into the broker while it runs.
type appStage struct {
	o    Options
	bin  string
	dir  string // of the store
	url  string
	disk *smallDisk // nil: it lies on that of the histories

	mu        sync.Mutex
	processes []*spawned
}

// openApps prepares the directory of a store.
func openApps(ctx context.Context, o Options) (stage, error) {
	bin, err := o.commands(ctx)
	if err != nil {
		return nil, err
	}
	s := &appStage{o: o, bin: bin}
	if s.dir, err = os.MkdirTemp("", "ferry-torture-store-"); err != nil {
		return nil, errors.Join(err, o.discard(bin))
	}
	query := ""
	switch o.Fault.Setup {
	case setupInterval:
		query = "?sync=50ms"
	case setupSmallDisk:
		query = fmt.Sprintf("?reserve=%d", reserveBytes)
		if s.disk, err = mountSmallDisk(s.dir); err != nil {
			return nil, errors.Join(err, os.RemoveAll(s.dir), o.discard(bin))
		}
	case setupFreezable:
		query = fmt.Sprintf("?reserve=%d", reserveBytes)
		if s.disk, err = mountFreezable(s.dir); err != nil {
			return nil, errors.Join(err, os.RemoveAll(s.dir), o.discard(bin))
		}
	}
	s.url = "disk://" + filepath.Join(s.dir, "store") + query
	return s, nil
}

func (s *appStage) look(ctx context.Context, f func(driver.Driver) error) error {
	b, err := open.URL(ctx, s.url)
	if err != nil {
		return err
	}
	return errors.Join(f(b.Driver()), b.Close(ctx))
}

func (s *appStage) servers() servers {
	if s.disk == nil {
		return nil
	}
	return s.disk
}

func (s *appStage) start(_ context.Context, role string, seed uint64, name string) (process, error) {
	p, err := s.o.spawn(s.o.programs(s.bin, name), s.url, nil, app, name, s.o.settings(role, seed))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = append(living(s.processes), p)
	return p, nil
}

// drain tells the last life to end when it has nothing left to do, or else when the time is over.
func (s *appStage) drain(ctx context.Context, c *cast) error {
	c.sayFarewell(app, func(p process) error {
		if p, ok := p.(*spawned); ok {
			return p.drain()
		}
		return fmt.Errorf("%T cannot be told to drain", p)
	}, true)
	draining, cancel := context.WithTimeout(ctx, s.o.Drain)
	defer cancel()
	if c.gone(draining, app) != nil { // what is left is for the checker to find
		c.dismiss(app)
	}
	return s.o.awaitEnd(ctx, c, app)
}

func (s *appStage) close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.disk != nil {
		errs = append(errs, s.disk.thaw())
	}
	for _, p := range s.processes {
		errs = append(errs, p.kill())
	}
	if s.disk != nil {
		errs = append(errs, s.disk.unmount())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir), s.o.discard(s.bin))...)
}
