package open

import (
	"context"
	"net/url"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
)

// openDisk opens disk:///absolute/path or disk://./relative/path, with ?sync=always or an interval such as sync=1s,
// and create=false where a store must be there.
func openDisk(ctx context.Context, rest string, p *parameters, o ferry.Options) (*ferry.Broker, error) {
	do, err := diskOptionsOf(rest, p)
	if err != nil {
		return nil, err
	}
	do.Logger, do.Broker = o.Logger, o
	return disk.Open(ctx, do)
}

// Disk returns the options of a disk:// URL, for work on the directory itself: disk.Check and disk.Backup.
func Disk(rawURL string) (disk.Options, error) {
	scheme, err := schemeOf(rawURL)
	if err != nil {
		return disk.Options{}, err
	}
	if scheme != "disk" {
		return disk.Options{}, driver.NewError(driver.ErrUnsupported, "only a broker in a directory has files of its own",
			"give a URL that begins with disk://", nil)
	}
	rest, p, err := split(scheme, rawURL)
	if err != nil {
		return disk.Options{}, err
	}
	return diskOptionsOf(rest, p)
}

func diskOptionsOf(rest string, p *parameters) (disk.Options, error) {
	dir, err := url.PathUnescape(rest)
	if err != nil || !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "./") && !strings.HasPrefix(dir, "../") {
		return disk.Options{}, driver.NewError(driver.ErrInvalid, "a disk:// URL names a directory",
			"write disk:///absolute/path or disk://./relative/path", nil)
	}
	do := disk.Options{
		Dir: dir, MaxMessages: p.number("max_messages"), MaxBody: int(p.number("max_body")), Reserve: p.number("reserve"),
	}
	if p.values.Has("create") {
		do.MustExist = !p.flag("create")
	}
	if p.values.Get("sync") == "always" {
		p.values.Del("sync")
	} else if every := p.duration("sync"); every > 0 {
		do.Sync = disk.Interval(every)
	}
	return do, p.done()
}
