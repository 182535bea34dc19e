package cluster

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// Membership is how a client of ours is known in its group.
type Membership struct {
	guard      sync.Mutex
	ID         string
	Generation int32
}

// NoteGeneration is given the client, since callbacks begin before its maker has returned it.
func (x *Membership) NoteGeneration(cl *kgo.Client) {
	id, generation := cl.GroupMetadata()
	x.guard.Lock()
	defer x.guard.Unlock()
	x.ID, x.Generation = id, generation
}

// Known is who we are for the coordinator.
func (x *Membership) Known() (id string, generation int32) {
	x.guard.Lock()
	defer x.guard.Unlock()
	return x.ID, x.Generation
}

// Identity is who we are in a group, and in which of its generations.
type Identity struct {
	ID         string
	Generation int32
}

// Heartbeat sends a heartbeat, and returns as whom. The coordinator knows that member if it has nothing against it, or
// says that a rebalance is going on.
func (x *Membership) Heartbeat(ctx context.Context, cl *kgo.Client, group string) (as Identity, err error) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group = group
	req.MemberID, req.Generation = x.Known()
	resp, err := req.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	return Identity{req.MemberID, req.Generation}, err
}

// Expel removes all members from a group.
func (d *Cluster) Expel(ctx context.Context, group string) error {
	found, err := d.Admin.DescribeGroups(ctx, group)
	if err == nil {
		err = found[group].Err
	}
	if err != nil {
		return d.Unreached("reading the members of "+group, err)
	}
	var ids []string
	for _, m := range found[group].Members {
		ids = append(ids, m.MemberID)
	}
	return d.Remove(ctx, group, ids...)
}

// Remove makes members leave a group. Who has gone already is no error.
func (d *Cluster) Remove(ctx context.Context, group string, ids ...string) error {
	ctx, cancel := context.WithTimeout(ctx, d.Settings.Session)
	defer cancel()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, id := range ids {
		x := kmsg.NewLeaveGroupRequestMember()
		x.MemberID, x.Reason = id, Text("removed by another process, or before it joins anew")
		req.Members = append(req.Members, x)
	}
	_, err := req.RequestWith(ctx, d.Client)
	return d.Unreached("making members of "+group+" leave", err)
}

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

// AddTxnCommit adds the commit of a partition to those of a transaction.
func AddTxnCommit(req *kmsg.TxnOffsetCommitRequest, topic string, partition int32, done *offsets.Set, metadata string) {
	c, t, p := CommitOf(partition, done, metadata), kmsg.NewTxnOffsetCommitRequestTopic(),
		kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = c.Partition, c.Offset, c.LeaderEpoch, c.Metadata
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
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
