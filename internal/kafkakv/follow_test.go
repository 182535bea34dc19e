package kafkakv

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// detached is a partition that nobody reads.
func detached(t *testing.T) *partition {
	k := New(Options{Topic: "kv", Unsure: func(_ string, err error) error {
		return err
	}, Unreached: func(_ string, err error) error { return err }})
	t.Cleanup(k.Close)
	p := k.partition(0)
	p.begin(0)
	return p
}

// fetched is what a client hands over: records, or why there are none.
func fetched(err error, rs ...*kgo.Record) kgo.Fetches {
	return kgo.Fetches{{Topics: []kgo.FetchTopic{
		{Topic: "kv", Partitions: []kgo.FetchPartition{{Err: err, Records: rs}}}}}}
}

func stand(offset int64, epoch int32, value []byte) *kgo.Record {
	return &kgo.Record{Offset: offset, LeaderEpoch: epoch, Value: value}
}

// TestCutLogIsReadAnew: when the log is not what was read any more, reading begins anew; an error that stays is told,
// and one that does not is not.
func TestCutLogIsReadAnew(t *testing.T) {
	tick := encodeTick("t")
	for name, x := range map[string]struct {
		fetches kgo.Fetches
		again   bool
		err     error
	}{
		"more records":                {fetches: fetched(nil, stand(2, 0, tick))},
		"another record at an offset": {fetches: fetched(nil, stand(1, 1, tick)), again: true},
		"it lost its end":             {fetches: fetched(&kgo.ErrDataLoss{Topic: "kv"}), again: true},
		"it was trimmed":              {fetches: fetched(kerr.OffsetOutOfRange), again: true},
		"no leader for a moment":      {fetches: fetched(kerr.NotLeaderForPartition)},
		"it may not be read":          {fetches: fetched(kerr.TopicAuthorizationFailed), err: kerr.TopicAuthorizationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			p := detached(t)
			if again, err := p.takeAll(fetched(nil, stand(0, 0, tick), stand(1, 0, tick))); again || err != nil {
				t.Fatal(again, err)
			}
			if again, err := p.takeAll(x.fetches); again != x.again || !errors.Is(err, x.err) {
				t.Errorf("again %v, %v", again, err)
			}
		})
	}
}

// TestVerdictThatNobodyRead: who wrote a record that reading began behind is told that nobody knows, whether the
// brokers answer before or after.
func TestVerdictThatNobodyRead(t *testing.T) {
	for name, late := range map[string]bool{"answered before": false, "answered after": true} {
		t.Run(name, func(t *testing.T) {
			p := detached(t)
			w := p.expect("mine")
			if !late {
				p.stored("mine", 3, nil)
			}
			x := newReplica(0, func(outcome) {})
			x.next = 5
			rs, _ := chunkRecords("s", "kv", 0, x.image().chunks())
			rs[0].Offset = 5
			p.begin(5)
			if again, err := p.takeAll(fetched(nil, rs...)); again || err != nil || !p.known() {
				t.Fatal(again, err, p.known())
			}
			if late {
				p.stored("mine", 3, nil)
			}
			if r := p.verdict(t.Context(), w); !errors.Is(r.Err, driver.ErrUnknown) {
				t.Errorf("%+v", r)
			}
		})
	}
}
