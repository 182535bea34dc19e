package ferrytest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
)

// A test of a worker: an order that is due tomorrow is billed, and a mail about it is sent.
func Example() {
	test := func(t *testing.T) {
		ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
			k.Start(newBilling(k.Broker))
			_, _ = ferry.Publish(t.Context(), k.Broker, "orders", Order{ID: 7}, ferry.Delay(24*time.Hour))
			k.Advance(24 * time.Hour) // no time at all
			k.ExpectAcked("orders", 1)
			for _, mail := range k.ExpectPublished("mails", 1) {
				fmt.Printf("%s\n", mail.Body)
			}
		})
	}
	goTest("TestBilling", test)
	// Output: "order 7 is billed"
}
