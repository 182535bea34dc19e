package redisconn

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

func TestDelayText(t *testing.T) {
	for _, tt := range []struct {
		msg  driver.Message
		want string
	}{
		{driver.Message{}, ""},
		{driver.Message{Delay: driver.Hold}, "h"},
		{driver.Message{Delay: time.Nanosecond}, "1"}, // never early
		{driver.Message{Delay: time.Millisecond}, "1"},
		{driver.Message{Delay: time.Millisecond + 1}, "2"},
		{driver.Message{At: time.UnixMilli(1700)}, "@1700"},
		{driver.Message{At: time.UnixMilli(1700).Add(1)}, "@1701"},
		{driver.Message{At: time.Unix(-5, 0)}, "@0"},
		{driver.Message{At: time.Date(290000, 1, 1, 0, 0, 0, 0, time.UTC)}, "@90000000000000"},
	} {
		if got := DelayText(&tt.msg); got != tt.want {
			t.Errorf("DelayText(%v, %v) = %q, want %q", tt.msg.Delay, tt.msg.At, got, tt.want)
		}
	}
}
