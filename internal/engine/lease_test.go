package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestLeaseListIsOrdered extends some leases, and expects the list to stay in the order of expiry.
func TestLeaseListIsOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t)
		s := subscribe(t, e, driver.SubscribeOptions{Lease: 5 * time.Second})
		var ds []*driver.Delivery
		for i := range 10 {
			publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(i)})
			ds = append(ds, take(t, s, 1)...)
			time.Sleep(100 * time.Millisecond)
		}
		for _, i := range []int{0, 4, 9} {
			if err := s.Extend(context.Background(), ds[i:i+1])[0]; err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		var order []string
		last := tick(0)
		for it := range s.holder.All() {
			if it.claim.expires < last {
				t.Error("the list is out of order")
			}
			last = it.claim.expires
			order = append(order, it.e.id)
		}
		if got := strings.Join(order, ""); got != "1235678049" {
			t.Errorf("leases end in order %s", got)
		}
	})
}

// TestRunExpiresTogether: a follower with a longer lease returns with its predecessor, uncounted, in both orders.
func TestRunExpiresTogether(t *testing.T) {
	for _, order := range []driver.Order{driver.Strict, driver.Relaxed} {
		synctest.Test(t, func(t *testing.T) {
			e := open(t)
			s := subscribe(t, e, driver.SubscribeOptions{MaxRun: 3, Lease: 2 * time.Second, Order: order})
			for i := range 3 {
				publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(i), Key: "k"})
			}
			ds := take(t, s, 3)
			time.Sleep(time.Second)
			s.Extend(context.Background(), ds[1:])
			time.Sleep(1001 * time.Millisecond)
			for i, err := range s.Settle(context.Background(), []driver.Settlement{{Delivery: ds[1]}, {Delivery: ds[2]}}) {
				if !errors.Is(err, driver.ErrLeaseLost) {
					t.Errorf("%s: settling follower %d: %v, want ErrLeaseLost", order, i, err)
				}
			}
			var got []string
			for _, d := range take(t, s, 3) {
				got = append(got, fmt.Sprint(d.ID, " ", d.Deliveries, " ", d.Cause))
			}
			if want := "[0 2 lease_expired 1 1 lease_expired 2 1 lease_expired]"; fmt.Sprint(got) != want {
				t.Errorf("%s: got %v, want %s", order, got, want)
			}
		})
	}
}

func TestTokensNameNonceAndCounter(t *testing.T) {
	t.Parallel()
	a, b := open(t), open(t)
	seen := map[string]bool{}
	for _, e := range []*Engine{a, b} {
		s := subscribe(t, e, driver.SubscribeOptions{})
		publish(t, e, &driver.Message{Topic: "t", ID: "1"}, &driver.Message{Topic: "t", ID: "2"})
		for _, d := range take(t, s, 2) {
			if want := fmt.Sprintf("%016x-", e.nonce); !strings.HasPrefix(d.Token.String(), want) {
				t.Errorf("token %s does not begin with %s", d.Token, want)
			}
			seen[d.Token.String()] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("tokens are not unique: %v", seen)
	}
}

// TestForeignTokenIsRefused settles deliveries of one engine and subscription through others.
func TestForeignTokenIsRefused(t *testing.T) {
	t.Parallel()
	a, b := open(t), open(t)
	owner, other := subscribe(t, a, driver.SubscribeOptions{}), subscribe(t, a, driver.SubscribeOptions{})
	foreign := subscribe(t, b, driver.SubscribeOptions{})
	publish(t, a, &driver.Message{Topic: "t", ID: "1"})
	ds := take(t, owner, 1)
	for _, s := range []*subscription{other, foreign} {
		if err := s.Settle(context.Background(), []driver.Settlement{{Delivery: ds[0]}})[0]; !errors.Is(err,
			driver.ErrLeaseLost) {
			t.Errorf("settled by a stranger: %v", err)
		}
	}
	settle(t, owner, driver.Ack, 0, ds...)
}
