package driver

import (
	"crypto/sha256"
	"fmt"
	"strconv"
)

// Resolve fills in the defaults of o for a driver with capabilities c, and says what is wrong with it. Every driver
// calls it first in Subscribe.
func (o SubscribeOptions) Resolve(c Capabilities) (SubscribeOptions, error) {
	if o.Group == "" {
		o.Group = DefaultGroup
	}
	if o.Lease == 0 {
		o.Lease = c.DefaultLease
	}
	if o.MaxRun == 0 {
		o.MaxRun = DefaultMaxRun
	}
	if o.MaxInflight == 0 {
		o.MaxInflight = DefaultMaxInflight
	}
	if o.Weights == [4]int{} {
		o.Weights = DefaultWeights
	}
	if err := CheckGroup(o.Topic, o.Group); err != nil {
		return o, err
	}
	if err := checkText("instance name", o.Instance, MaxNameLen); err != nil {
		return o, err
	}
	switch {
	case o.Instance == "":
		return o, NewError(ErrInvalid, "the instance has no name",
			"set SubscribeOptions.Instance, to host and pid for example", nil)
	case o.Lease < c.MinLease:
		return o, NewError(ErrUnsupported, fmt.Sprintf("a lease of %v is too short for %s", o.Lease, c.Driver),
			fmt.Sprintf("use at least %v", c.MinLease), nil)
	case o.MaxRun < 0 || o.MaxInflight < 0:
		return o, NewError(ErrInvalid, "MaxRun or MaxInflight is negative", "leave it zero for the default", nil)
	}
	for _, w := range o.Weights {
		if w < 1 || w > MaxWeight {
			return o, NewError(ErrInvalid,
				fmt.Sprintf("lane weights %v contain less than 1 or more than %d", o.Weights, MaxWeight),
				"use something between for each lane, or StrictPriority", nil)
		}
	}
	return o, GroupOptions{Order: o.Order, Start: o.Start}.Check(c)
}

// EmitID is the id of the index-th follow-up that has none of its own, of a parent named by topic, group and id: the
// same each time it is derived, so that a repeated emit is recognised as a duplicate. It has the form of a UUID
// (version 8) however long the chain.
func EmitID(parent string, index int) string {
	sum := sha256.Sum256([]byte(parent + "/" + strconv.Itoa(index)))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
