package driver_test

import (
	"testing"
	"unsafe"

	"github.com/ferrymq/ferry/driver"
)

// A message is copied and stored again and again: a field more may cost each of them a larger piece of memory.
func TestMessageStaysSmall(t *testing.T) {
	if n := unsafe.Sizeof(driver.Message{}); n > 216 && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("a message takes %d bytes", n)
	}
}
