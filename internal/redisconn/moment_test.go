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
		{driver.Message{At: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}, "@90000000000000"},
		{driver.Message{At: time.Unix(1<<61, 0)}, "@90000000000000"}, // its milliseconds do not fit an int64
		{driver.Message{At: time.UnixMilli(maxMS).Add(-1)}, "@90000000000000"},
		{driver.Message{Delay: driver.Hold - 1}, "9223372036855"},
	} {
		if got := DelayText(&tt.msg); got != tt.want {
			t.Errorf("DelayText(%v, %v) = %q, want %q", tt.msg.Delay, tt.msg.At, got, tt.want)
		}
	}
}
