package driver_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// A configuration is told in words, in errors too.
func TestTopicConfigInWords(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]driver.TopicConfig{
		"defaults":                          {},
		"max messages 10, keep 24h0m0s":     {MaxMessages: 10, Keep: 24 * time.Hour},
		"partitions 4, expired dead":        {Partitions: 4, ExpiredDead: true},
		"max bytes 7, keep 1s, keep most 3": {MaxBytes: 7, Keep: time.Second, KeepMost: 3},
	} {
		if got := fmt.Sprintf("%+v", c); got != want {
			t.Errorf("it is told as %q, want %q", got, want)
		}
	}
	for want, c := range map[string]driver.TopicConfig{
		"max messages -1 is negative": {MaxMessages: -1}, "max bytes -1 is negative": {MaxBytes: -1},
		"keep -1h0m0s is negative": {Keep: -time.Hour},
		"keep most -1 is negative": {KeepMost: -1}, "partitions -1 is negative": {Partitions: -1},
	} {
		if err := c.Check(); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
