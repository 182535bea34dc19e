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
	guard sync.Mutex
	Identity
}

// Identity is who we are in a group, and in which of its generations.
type Identity struct {
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
func (x *Membership) Known() Identity {
	x.guard.Lock()
	defer x.guard.Unlock()
	return x.Identity
}

// Heartbeat asks the coordinator whether it knows us, and returns as whom. It does unless there is an error; it is calm
// if no rebalance is going on.
func (x *Membership) Heartbeat(ctx context.Context, d *Cluster, group string) (as Identity, calm bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.Settings.Session)
	defer cancel()
	as = x.Known()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = group, as.ID, as.Generation
	resp, err := req.RequestWith(ctx, d.Client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if errors.Is(err, kerr.RebalanceInProgress) {
		return as, false, nil
	}
	return as, err == nil, err
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
		x.MemberID, x.Reason = id, new("removed by another process, or before it joins anew")
		req.Members = append(req.Members, x)
	}
	_, err := req.RequestWith(ctx, d.Client)
	return d.Unreached("making members of "+group+" leave", err)
}

// CommitAs is a commit of a group, by who we are in it, of partitions of a topic that are still to be added.
func (x *Membership) CommitAs(group, topic string) (*kmsg.OffsetCommitRequest, *kmsg.OffsetCommitRequestTopic) {
	as, req, t := x.Known(), kmsg.NewPtrOffsetCommitRequest(), kmsg.NewOffsetCommitRequestTopic()
	req.Group, req.MemberID, req.Generation = group, as.ID, as.Generation
	t.Topic = topic
	req.Topics = append(req.Topics, t)
	return req, &req.Topics[0]
}

// CommitOf is the commit of a partition.
func CommitOf(partition int32, done *offsets.Set, metadata string) kmsg.OffsetCommitRequestTopicPartition {
	c := kmsg.NewOffsetCommitRequestTopicPartition()
	c.Partition, c.Offset, c.LeaderEpoch, c.Metadata = partition, done.Base, done.Seen, &metadata
	return c
}

// AddTxnCommit adds the commit of a partition to those of a transaction, by who we were when it was composed.
func (as Identity) AddTxnCommit(req *kmsg.TxnOffsetCommitRequest, topic string, partition int32, done *offsets.Set,
	metadata string) {
	c := CommitOf(partition, done, metadata)
	t, p := kmsg.NewTxnOffsetCommitRequestTopic(), kmsg.NewTxnOffsetCommitRequestTopicPartition()
	req.MemberID, req.Generation = as.ID, as.Generation
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
