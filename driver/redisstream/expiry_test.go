package redisstream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// More messages expire at once than one script deals with: none of them is delivered all the same.
func TestManyExpireAtOnce(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	s := w.subscribe("a", time.Minute)
	const ttl = 200 * time.Millisecond
	var ms []*driver.Message
	for i := range 1000 {
		ms = append(ms, &driver.Message{ID: fmt.Sprint(i), Topic: "jobs", TTL: ttl})
	}
	_, err := w.d.Publish(w.ctx(), ms, driver.PublishOptions{})
	w.ok(err)
	time.Sleep(2 * ttl) // that time passes is what is tested
	w.publish(0, 1, "")
	if d := w.take(s, 1)[0]; d.TTL != 0 {
		t.Errorf("%s came, %v after it was published with a TTL of %v", d.ID, d.ClaimedAt.Sub(d.PublishedAt), ttl)
	}
	w.until("all have expired", func() bool { return w.stats().Expired == 1000 })
	w.sound()
}
