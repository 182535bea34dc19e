package registry

import (
	"cmp"
	"context"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// CommitIdle sets the offsets of a group without members, with their metadata.
func (d *Registry) CommitIdle(ctx context.Context, t *TopicState, group string, at map[int32]int64, meta map[int32]string) error {
	var all kadm.Offsets
	for p, o := range at {
		all.Add(kadm.Offset{Topic: d.cluster.MainTopic(t.Name), Partition: p, At: o, LeaderEpoch: -1, Metadata: cmp.Or(meta[p], offsets.CleanText)})
	}
	return d.CommitAsNobody(ctx, t, group, all)
}

// CommitAsNobody commits for a group without members.
func (d *Registry) CommitAsNobody(ctx context.Context, t *TopicState, group string, offsets kadm.Offsets) error {
	resp, err := d.cluster.Admin.CommitOffsets(ctx, d.cluster.GroupID(t.Name, group), offsets)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		return driver.NewError(driver.ErrConflict, "the position of group "+group+" cannot be set", "stop its consumers first", err)
	}
	return nil
}

// Committed reads the offsets of a group and their metadata.
func (d *Registry) Committed(ctx context.Context, t *TopicState, group string) (map[int32]kadm.Offset, error) {
	return d.cluster.CommittedOf(ctx, d.cluster.GroupID(t.Name, group), d.cluster.MainTopic(t.Name))
}
