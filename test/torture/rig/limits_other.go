//go:build !linux

package rig

import (
	"errors"

	"github.com/ferrymq/ferry/test/torture/schedule"
)

// limitActions exist on Linux only.
func limitActions(...string) schedule.Actions { return nil }

func setFiles(int, string) (func() error, error) {
	return nil, errors.New("the files of another process can be limited on Linux only")
}
