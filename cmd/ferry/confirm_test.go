package main

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
)

// A read that waits ends with its context; what comes later is lost to nobody else's buffer.
func TestAPatientReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, feed := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		buffer := make([]byte, 8)
		ended := make(chan error)
		go func() {
			_, err := patient{ctx, in}.Read(buffer)
			ended <- err
		}()
		synctest.Wait() // it waits for input
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := feed.Write([]byte("late")); err != nil { // taken by the read that was given up
			t.Error(err)
		}
		synctest.Wait()
		if string(buffer) != string(make([]byte, 8)) {
			t.Errorf("the buffer was written to: %q", buffer)
		}
	})
}
