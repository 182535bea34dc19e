package cluster

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// CommitAs is a commit of a group, by who we are in it.
func (x *Membership) CommitAs(group string) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = group
	req.MemberID, req.Generation = x.Known()
	return req
}

// CommitOf is the commit of a partition.
func CommitOf(partition int32, done *offsets.Set, metadata string) kmsg.OffsetCommitRequestTopicPartition {
	c := kmsg.NewOffsetCommitRequestTopicPartition()
	c.Partition, c.Offset, c.LeaderEpoch, c.Metadata = partition, done.Base, done.Seen, &metadata
	return c
}

// SendCommit commits. A partition that is refused is an error.
func SendCommit(ctx context.Context, cl *kgo.Client, req *kmsg.OffsetCommitRequest) error {
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	return err
}
