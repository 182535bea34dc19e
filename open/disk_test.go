package open_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/open"
)

func TestDisk(t *testing.T) {
	t.Parallel()
	o, err := open.Disk("disk:///var/lib/a%20b?sync=1s&reserve=7&max_messages=8&max_body=9")
	if err != nil || o.MustExist || o.Dir != "/var/lib/a b" || o.Sync != disk.Interval(time.Second) || o.Reserve != 7 ||
		o.MaxMessages != 8 || o.MaxBody != 9 {
		t.Errorf("%+v, %v", o, err)
	}
	for url, kind := range map[string]error{
		"redis://localhost": ferry.ErrUnsupported, "nothing": ferry.ErrInvalid, "disk://orders": ferry.ErrInvalid,
		"disk:///x?reserve=-1": ferry.ErrInvalid, "disk:///x?sync=sometimes": ferry.ErrInvalid,
		"disk:///x?colour=red": ferry.ErrInvalid, "disk:///x?create=perhaps": ferry.ErrInvalid,
	} {
		var e *ferry.Error
		if _, err := open.Disk(url); !errors.Is(err, kind) || !errors.As(err, &e) || e.Hint == "" {
			t.Errorf("%s: %v, want %v with a hint", url, err, kind)
		}
	}
}

func TestDiskThatMustExist(t *testing.T) {
	t.Parallel()
	for value, must := range map[string]bool{"true": false, "false": true} {
		if o, err := open.Disk("disk:///x?create=" + value); err != nil || o.MustExist != must {
			t.Errorf("create=%s: %+v, %v", value, o, err)
		}
	}
	if b, err := open.URL(t.Context(), "disk://"+t.TempDir()+"/none?create=false"); !errors.Is(err, ferry.ErrNotFound) {
		t.Errorf("%v, %v", b, err)
	}
}
