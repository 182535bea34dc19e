package kafka_test

import (
	"crypto/rand"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// TestReplayedKeepsItsPlace: a dead letter is replayed, which makes it the last of its key, and another message comes
// behind it. From the moment that somebody has got it nobody gets the other one first, whatever becomes of its holders.
func TestReplayedKeepsItsPlace(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "l"+rand.Text()[:10]+"."
	for life := range 4 {
		d, w := mortal(t, c, namespace)
		s := subscribe(t, d, "x")
		if life == 0 {
			publish(t, d, message("replayed", "k"))
			settle(t, s, receive(t, s), driver.Dead, 0)
			if err := d.CommitDirty(t.Context(), "orders", driver.DefaultGroup); err != nil {
				t.Fatal(err)
			}
			if err := d.Move(t.Context(), []driver.Move{{Target: target("replayed")}})[0]; err != nil {
				t.Fatal(err)
			}
			publish(t, d, message("behind", "k"))
		}
		x := receive(t, s)
		if x.ID != "replayed" {
			t.Fatalf("life %d gets %s first", life, x.ID)
		}
		if life == 1 {
			settle(t, s, x, driver.Retry, 0)
			if x = receive(t, s); x.ID != "replayed" {
				t.Fatalf("%s comes after the retry", x.ID)
			}
		}
		if life == 3 {
			settle(t, s, x, driver.Ack, 0)
			if x = receive(t, s); x.ID != "behind" {
				t.Errorf("%s comes last", x.ID)
			}
		}
		w.cut()
		expel(t, c, namespace+"orders:default")
	}
}
