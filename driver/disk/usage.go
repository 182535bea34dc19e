package disk

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Usage tells how much the files take, and how much is left of the file system they are on.
func (d *Driver) Usage(ctx context.Context) (driver.Usage, error) {
	if _, err := d.Topics(ctx); err != nil { // closed
		return driver.Usage{}, err
	}
	u := driver.Usage{Disk: int64(d.store.db.Metrics().DiskSpaceUsage())}
	if free, err := d.dir.fs.GetDiskUsage(d.dir.path); err == nil { // some file systems do not tell
		u.DiskFree = int64(free.AvailBytes)
	}
	return u, nil
}
