package main

import (
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
)

func TestShop(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		var lines []string
		s := &shop{print: func(line string) { lines = append(lines, line) }, closing: func() {}}
		k.Start(s.worker(k.Broker))
		for _, o := range []Order{{1, "ann"}, {2, "ann"}, {3, "bob"}} {
			if _, err := ferry.Publish(t.Context(), k.Broker, "orders", o, ferry.Key(o.Customer)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ferry.Publish(t.Context(), k.Broker, "mails", "hello", ferry.Delay(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		k.Advance(24 * time.Hour) // takes no time
		k.ExpectAcked("orders", 2)
		k.ExpectDead("orders", "fatal", 1)
		want := []string{"order 1 of ann is billed, attempt 2", "order 2 of ann is billed, attempt 1", "mail: hello"}
		if !slices.Equal(lines, want) {
			t.Errorf("%q", lines)
		}
	})
}
