//go:build !linux

package rig

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/test/torture/schedule"
)

// smallDisk exists on Linux only.
type smallDisk struct{}

const reserveBytes = 0

var errNoSmallDisk = errors.New("a small disk can be mounted on Linux only")

func diskActions() schedule.Actions { return schedule.Actions{} }

func mountSmallDisk(string) (*smallDisk, error) { return nil, errNoSmallDisk }

func (*smallDisk) unmount() error                                { return errNoSmallDisk }
func (*smallDisk) begin(schedule.Step, int) (string, error)      { return "", errNoSmallDisk }
func (*smallDisk) end(context.Context, schedule.Step, int) error { return errNoSmallDisk }

func mountFreezable(string) (*smallDisk, error) {
	return nil, errors.New("a disk that stalls needs Linux")
}

func (d *smallDisk) thaw() error { return nil }
