package kafka

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// membership is how a client of ours is known in its group, and what was committed beside the offsets that it got.
type membership struct {
	guard      sync.Mutex
	id         string
	generation int32
	metas      map[int32]string
}

// noteGeneration is given the client, since callbacks begin before its maker has returned it.
func (x *membership) noteGeneration(cl *kgo.Client) {
	id, generation := cl.GroupMetadata()
	x.guard.Lock()
	defer x.guard.Unlock()
	x.id, x.generation = id, generation
}

func (x *membership) offsetsFetched(_ context.Context, _ *kgo.Client, r *kmsg.OffsetFetchResponse) error {
	eachMetadata(r, x.noteMetadata)
	return nil
}

// noteMetadata notes what is committed beside the offset of a partition.
func (x *membership) noteMetadata(partition int32, text string) {
	x.guard.Lock()
	defer x.guard.Unlock()
	if x.metas == nil {
		x.metas = map[int32]string{}
	}
	x.metas[partition] = text
}

// known is who we are for the coordinator.
func (x *membership) known() (id string, generation int32) {
	x.guard.Lock()
	defer x.guard.Unlock()
	return x.id, x.generation
}

// standing is who we are in a group, and in which of its generations.
type standing struct {
	id         string
	generation int32
}

// ask sends a heartbeat, and returns as whom. The coordinator knows that member if it has nothing against it, or says that a rebalance is going on.
func (x *membership) ask(ctx context.Context, cl *kgo.Client, group string) (as standing, err error) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group = group
	req.MemberID, req.Generation = x.known()
	resp, err := req.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	return standing{req.MemberID, req.Generation}, err
}

// found is what was committed beside the offset of a partition.
func (x *membership) found(partition int32) string {
	x.guard.Lock()
	defer x.guard.Unlock()
	return x.metas[partition]
}
