package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ferrymq/ferry/driver"
)

// slowStore lets a test look at what happens while a range is read.
type slowStore struct {
	*mapStore
	slow    atomic.Bool
	reading chan struct{}
	goOn    chan struct{}
}

func (s *slowStore) Scan(from, to []byte, use func(key, value []byte) error) error {
	if s.slow.CompareAndSwap(true, false) {
		s.reading <- struct{}{}
		<-s.goOn
	}
	return s.mapStore.Scan(from, to, use)
}

// TestNobodyJoinsHalfAGroup: a group with a cold backlog is deleted in several steps. Who subscribes in between is
// refused; otherwise the group would stay, without the messages that had left already.
func TestNobodyJoinsHalfAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{mapStore: newMapStore(), reading: make(chan struct{}), goOn: make(chan struct{})}
		o := storeOptions(s.mapStore, 8)
		o.Store = s
		e := New(o)
		ctx := context.Background()
		for i := range 100 {
			publish(t, e, msg("t", fmt.Sprint(i)))
		}
		s.slow.Store(true)
		deleted := make(chan error, 1)
		go func() { deleted <- e.DeleteGroup(ctx, "t", driver.DefaultGroup) }()
		<-s.reading
		join := func() error {
			sub, err := e.Subscribe(ctx, driver.SubscribeOptions{Topic: "t", Group: driver.DefaultGroup, Instance: "i"})
			if err == nil {
				err = sub.Close(ctx)
			}
			return err
		}
		if err := join(); !errors.Is(err, driver.ErrConflict) {
			t.Errorf("Subscribe while the group is deleted: %v, want ErrConflict", err)
		}
		close(s.goOn)
		if err := <-deleted; err != nil {
			t.Errorf("DeleteGroup: %v", err)
		}
		if err := join(); err != nil {
			t.Errorf("Subscribe afterwards: %v", err)
		}
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
