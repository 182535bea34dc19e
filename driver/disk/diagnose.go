package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
)

// slowSync is how long a sync may take before a publish by one caller is slow because of it.
const slowSync = 20 * time.Millisecond

// Diagnose looks at what a publish really survives, at the directory, and at the disk below it.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.store.readers.enter(); err != nil {
		return nil, err
	}
	defer d.store.readers.leave()
	return []driver.Finding{d.findFailure(), d.findDurability(), d.findSpace(), d.findFormat(), d.findSyncTime()}, nil
}

func (d *Driver) findFailure() driver.Finding {
	if err := d.store.Failure(); err != nil {
		return driver.Finding{Severity: driver.SeverityError, Subject: "store",
			Text: "stopped after a failed write: " + err.Error(),
			Hint: "see to the disk, then close the broker and open it again"}
	}
	return driver.Finding{Severity: driver.SeverityOK, Subject: "store",
		Text: "in use by this process, all writes succeeded"}
}

func (d *Driver) findDurability() driver.Finding {
	if d.o.Sync.always() {
		return driver.Finding{Severity: driver.SeverityOK, Subject: "durability", Text: "a publish survives a power loss"}
	}
	return driver.Finding{Severity: driver.SeverityWarning, Subject: "durability",
		Text: fmt.Sprintf("a publish survives kill -9; a power loss takes the last %v", d.o.Sync.every),
		Hint: "use Sync: Always where that is too much"}
}

func (d *Driver) findSpace() driver.Finding {
	usage, err := d.dir.fs.GetDiskUsage(d.dir.path)
	switch {
	case err != nil:
		return driver.Finding{Severity: driver.SeverityUnknown, Subject: "free space", Text: err.Error(),
			Hint: "look yourself: df " + d.dir.path}
	case usage.AvailBytes < uint64(d.o.Reserve):
		return driver.Finding{Severity: driver.SeverityError, Subject: "free space",
			Text: fmt.Sprintf("%d MiB, less than the reserve of %d MiB: publishing is refused", usage.AvailBytes>>20,
				d.o.Reserve>>20),
			Hint: "free space, or let consumers catch up"}
	case usage.AvailBytes < 4*uint64(d.o.Reserve):
		return driver.Finding{Severity: driver.SeverityWarning, Subject: "free space",
			Text: fmt.Sprintf("%d MiB; publishing is refused below %d MiB", usage.AvailBytes>>20, d.o.Reserve>>20),
			Hint: "free space in time"}
	}
	return driver.Finding{Severity: driver.SeverityOK, Subject: "free space",
		Text: fmt.Sprintf("%d MiB", usage.AvailBytes>>20)}
}

func (d *Driver) findFormat() driver.Finding {
	m := d.store.db.Metrics()
	return driver.Finding{Severity: driver.SeverityOK, Subject: "format",
		Text: fmt.Sprintf("version %d, pebble format %v, %d MiB on disk in %s", formatVersion,
			d.store.db.FormatMajorVersion(), m.DiskSpaceUsage()>>20, d.dir.path)}
}

// findSyncTime measures what every publish waits for.
func (d *Driver) findSyncTime() driver.Finding {
	took, err := d.probe()
	switch {
	case err != nil:
		return driver.Finding{Severity: driver.SeverityError, Subject: "sync time", Text: err.Error(),
			Hint: "check that the directory can be written"}
	case took > slowSync:
		return driver.Finding{Severity: driver.SeverityWarning, Subject: "sync time", Text: took.String(),
			Hint: "publish from many callers at once, which share a sync, or use Sync: Interval, or a faster disk"}
	}
	return driver.Finding{Severity: driver.SeverityOK, Subject: "sync time", Text: took.String()}
}

// probe returns the middle of three syncs of a file of its own.
func (d *Driver) probe() (time.Duration, error) {
	fs := d.store.fs
	name := fs.PathJoin(d.dir.path, "probe.tmp")
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return 0, err
	}
	var took [3]time.Duration
	for i := range took {
		start := time.Now()
		_, werr := f.Write(make([]byte, 4096))
		err = errors.Join(err, werr, f.SyncData())
		took[i] = time.Since(start)
	}
	slices.Sort(took[:])
	return took[1], errors.Join(err, f.Close(), fs.Remove(name))
}
