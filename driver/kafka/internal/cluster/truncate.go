package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// CheckLogs compares what is known of partitions with their logs, and cuts off what these have lost. It returns where
// they were cut.
func (d *Cluster) CheckLogs(ctx context.Context, topic string, sets map[int32]*offsets.Set) (map[int32]int64, error) {
	var req kadm.OffsetForLeaderEpochRequest
	for id, s := range sets {
		if s.Seen >= 0 {
			req.Add(topic, id, s.Seen)
		}
	}
	if len(req) == 0 {
		return nil, nil
	}
	answers, err := d.Admin.OffsetForLeaderEpoch(ctx, req)
	if err != nil {
		return nil, d.Unreached("asking where leaders of "+topic+" began", err)
	}
	cuts := map[int32]int64{}
	for id, s := range sets {
		a, ok := answers[topic][id]
		switch {
		case !ok:
		case a.Err != nil:
			return nil, d.Unreached("asking where leaders of "+topic+" began", a.Err)
		case a.EndOffset >= 0 && a.EndOffset < s.Known():
			s.Cut(a.EndOffset)
			s.Seen, cuts[id] = a.LeaderEpoch, a.EndOffset
		}
	}
	return cuts, nil
}
