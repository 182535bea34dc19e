package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// A group that works is not called held back because a message has come a moment ago.
func TestWhoWorksIsNotHeldBack(t *testing.T) {
	for age, held := range map[time.Duration]bool{0: true, time.Second: false, soon: true} {
		why := whyGroup(driver.TopicStats{}, driver.GroupStats{Ready: 3, Consumers: 1, Oldest: age})
		if strings.Contains(why, "hold none") != held {
			t.Errorf("oldest %v: %s", age, why)
		}
	}
	works := driver.GroupStats{Ready: 3, Inflight: 1, Consumers: 1, Oldest: time.Minute}
	if why := whyGroup(driver.TopicStats{}, works); strings.Contains(why, "hold none") {
		t.Errorf("one is being handled: %s", why)
	}
}
