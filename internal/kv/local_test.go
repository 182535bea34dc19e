package kv

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/ferrymq/ferry/driver"
)

// slowStore stores a step when it is told how that ended.
type slowStore struct {
	ended  chan struct{}
	failed error
}

func (s *slowStore) Wait(ctx context.Context, _ bool) error {
	select {
	case <-s.ended:
		return s.failed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Nobody is told of a value before it is stored, neither who reads it nor who is refused because of it, and nobody at
// all when it could not be.
func TestNothingIsToldBeforeItIsStored(t *testing.T) {
	ctx := context.Background() // of no bubble
	calls := map[string]func(l *Local) error{
		"Get":     func(l *Local) error { _, err := l.Get(ctx, "b", "a"); return err },
		"List":    func(l *Local) error { _, err := l.List(ctx, driver.KVQuery{Bucket: "b"}); return err },
		"Wait":    func(l *Local) error { _, err := l.Wait(ctx, "b", "a", 0); return err },
		"Changes": func(l *Local) error { _, _, err := l.Changes(ctx, "b", 0); return err },
		"a write that is refused": func(l *Local) error {
			r := l.Apply(ctx, "b", driver.KVOptions{}, driver.Write{Name: "a", If: driver.Absent})[0]
			if errors.Is(r.Err, driver.ErrConflict) && r.Revision != 0 {
				return nil
			}
			return r.Err
		},
		"a write that is repeated": func(l *Local) error {
			return l.Apply(ctx, "b", driver.KVOptions{}, driver.Write{Name: "a", Request: "r"})[0].Err
		},
	}
	for name, call := range calls {
		for _, failure := range []error{nil, errors.New("the disk is full")} {
			synctest.Test(t, func(t *testing.T) { toldWhenStored(t, name, call, failure) })
		}
	}
}

func toldWhenStored(t *testing.T, name string, call func(l *Local) error, failure error) {
	s := &slowStore{ended: make(chan struct{})}
	stopped := false
	l := NewLocal(LocalOptions{Save: func([]Record, bool) Saving { return s.Wait }, Stopped: func() error {
		if stopped {
			return driver.NewError(driver.ErrClosed, "the store stopped", "open it again", failure)
		}
		return nil
	}})
	defer l.Close()
	go l.Apply(context.Background(), "b", driver.KVOptions{}, driver.Write{Name: "a", Data: []byte("x"), Request: "r"})
	synctest.Wait()
	told := make(chan error, 1)
	go func() { told <- call(l) }()
	synctest.Wait()
	select {
	case err := <-told:
		t.Errorf("%s returned %v before the value was stored", name, err)
		told <- err
	default:
	}
	s.failed, stopped = failure, failure != nil
	close(s.ended)
	err := <-told
	if failure == nil && err != nil || failure != nil && !errors.Is(err, driver.ErrClosed) && !errors.Is(err, failure) {
		t.Errorf("%s: %v, and the store says %v", name, err, failure)
	}
	if failure != nil {
		if err := call(l); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%s after the store stopped: %v", name, err)
		}
	}
}

// Who reads while a value is being stored, and gives up, is told that.
func TestReaderGivesUp(t *testing.T) {
	s := &slowStore{ended: make(chan struct{})}
	l := NewLocal(LocalOptions{Save: func([]Record, bool) Saving { return s.Wait }})
	defer l.Close()
	ended, end := context.WithCancel(t.Context())
	end()
	l.Apply(ended, "b", driver.KVOptions{}, driver.Write{Name: "a"})
	if _, err := l.Get(ended, "b", "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v", err)
	}
	close(s.ended)
}
