package retrylog

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// CommandPrefix begins the key of a command.
const CommandPrefix = "c/"

// LivingKeys are the keys in a retry log under which the message of a dead letter may live: as it was, as what its
// replay made of it, or with another key.
func LivingKeys(e driver.Entry) []string {
	keys := []string{fmt.Sprintf("r/%s/%d", e.ID, e.Dead.Rounds), fmt.Sprintf("r/%s/%d", e.ID, e.Dead.Rounds+1),
		fmt.Sprintf("k/%s/%s", e.ID, e.Ref)}
	if e.Ref.Sub == 0 {
		keys = append(keys, fmt.Sprint(MainPrefix, int64(e.Ref.Pos)-1))
	}
	return keys
}

// LiveKeys are the keys of what is unfinished in a retry log that others own. It is read on from where the last look
// ended.
type LiveKeys struct {
	Mu   sync.Mutex
	next map[int32]int64
	live map[logKey]bool
}

// NewLiveKeys knows nothing yet.
func NewLiveKeys() *LiveKeys { return &LiveKeys{next: map[int32]int64{}, live: map[logKey]bool{}} }

type logKey struct {
	partition int32
	key       string
}

// ReadOn learns what was stored since the last look.
func (s *LiveKeys) ReadOn(ctx context.Context, d *cluster.Cluster, topic string) error {
	ends, err := d.Offsets(ctx, d.Admin.ListCommittedOffsets, topic)
	if err != nil {
		return err
	}
	spans := map[int32][2]int64{}
	for id, end := range ends {
		if end < s.next[id] { // it was made anew
			s.next[id] = 0
			maps.DeleteFunc(s.live, func(k logKey, _ bool) bool { return k.partition == id })
		}
		if s.next[id] < end {
			spans[id] = [2]int64{s.next[id], end}
		}
	}
	if err := d.ReadSpans(ctx, topic, spans, s.note); err != nil {
		return err
	}
	for id, span := range spans {
		s.next[id] = span[1]
	}
	return nil
}

// note takes in a record of the retry log.
func (s *LiveKeys) note(r *kgo.Record) {
	key := logKey{r.Partition, string(r.Key)}
	if strings.HasPrefix(key.key, CommandPrefix) || key.key == EpochKey {
		return
	}
	x, _ := record.StateOf(r)
	if x.Late(r) {
		return
	}
	if r.Value == nil || x.Done {
		delete(s.live, key)
	} else {
		s.live[key] = true
	}
}

// HasOne reports whether the message of a dead letter is unfinished in one of some partitions.
func (s *LiveKeys) HasOne(ids []int32, e driver.Entry) bool {
	for _, key := range LivingKeys(e) {
		for _, id := range ids {
			if s.live[logKey{id, key}] {
				return true
			}
		}
	}
	return false
}

// NoticePrefix begins the key of a notice. A notice of a holder about a lost delivery that had begun takes its count
// back. Where its partition is with another consumer, or may be, it is a record in the retry log: the owner reads it,
// also the next one. The key has the token, the value is the key of the message in the retry log.
const NoticePrefix = "w/"

// EpochKey says in a retry log who owns it from here on.
const EpochKey = "e"

// MainPrefix begins keys in the retry log whose rest is an offset of the main topic.
const MainPrefix = "m/"
