package kafka_test

import (
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// TestJoinsAnew: a coordinator that was replaced, and does not know it yet, tells a member that it is none, so that it
// joins anew, at the next coordinator, where it still is one. The old member is not heard of any more: otherwise the
// group would wait for it until the time to rebalance is over.
func TestJoinsAnew(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("a", ""))
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
	old := denyMembers(c)
	<-old.begun
	publish(t, d, message("b", ""))
	settle(t, s, receive(t, s), driver.Ack, 0)
	if n := old.heard(); n > 1 { // one may have been on its way
		t.Errorf("%d heartbeats of the old member after the new one had joined", n)
	}
}

// denied is a member that was told that it is none.
type denied struct {
	begun chan struct{} // closed when it has begun to join as another

	mu    sync.Mutex
	id    string
	beats int // since then
}

func (x *denied) heard() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.beats
}

// denyMembers tells the member of a group that it is none until it has tried to join again.
func denyMembers(c *kfake.Cluster) *denied {
	x := &denied{begun: make(chan struct{})}
	c.ControlKey(int16(kmsg.Heartbeat), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.HeartbeatRequest)
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.id != "" {
			if req.MemberID == x.id {
				x.beats++
			}
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
		resp.ErrorCode = kerr.UnknownMemberID.Code
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.JoinGroup), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.JoinGroupRequest)
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.id != "" || req.MemberID == "" {
			return nil, nil, false
		}
		x.id = req.MemberID
		close(x.begun)
		resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
		resp.ErrorCode = kerr.UnknownMemberID.Code
		return resp, nil, true
	})
	return x
}

// TestLooksAround: while the coordinator does not answer, a member asks which brokers there are, so that it gives up
// one that stands still as soon as the others have.
func TestLooksAround(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.SleepOutOfOrder())
	d := openFake(t, c)
	publish(t, d, message("a", ""))
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
	thawed, looks := make(chan struct{}), make(chan struct{}, 1)
	t.Cleanup(func() { close(thawed) })
	c.ControlKey(int16(kmsg.Heartbeat), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		c.SleepControl(func() { <-thawed })
		return nil, nil, false
	})
	c.ControlKey(int16(kmsg.Metadata), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if req := kreq.(*kmsg.MetadataRequest); req.Topics != nil && len(req.Topics) == 0 {
			select {
			case looks <- struct{}{}:
			default:
			}
		}
		return nil, nil, false
	})
	for range 2 { // both clients, or one of them again
		select {
		case <-looks:
		case <-time.After(time.Minute):
			t.Fatal("the coordinator is silent, and nobody looks whether it is still there")
		}
	}
}
