package consumer

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// loggedRecord is a record of a retry log. Nil is a tombstone.
func loggedRecord(key string, value []byte, s record.State) *kgo.Record {
	return &kgo.Record{Partition: 1, Key: []byte(key), Value: value, Timestamp: time.UnixMilli(2000),
		Headers: []kgo.RecordHeader{s.Header()}}
}

// TestLiveKeys: the message of a dead letter lives as long as the newest record that counts under one of its keys is
// neither a tombstone nor an end.
func TestLiveKeys(t *testing.T) {
	t.Parallel()
	letter := driver.Entry{Message: &driver.Message{ID: "a"}, Ref: driver.Ref{Partition: 1, Pos: 8},
		Dead: &driver.DeadLetter{Rounds: 2}}
	body := []byte("m")
	for name, x := range map[string]struct {
		records []*kgo.Record
		lives   bool
	}{
		"nothing":        {},
		"as it was":      {[]*kgo.Record{loggedRecord("m/7", body, record.State{})}, true},
		"another offset": {[]*kgo.Record{loggedRecord("m/8", body, record.State{})}, false},
		"ended": {[]*kgo.Record{loggedRecord("m/7", body, record.State{}), loggedRecord("m/7", nil, record.State{})},
			false},
		"ended, not committed": {[]*kgo.Record{loggedRecord("m/7", body, record.State{}),
			loggedRecord("m/7", []byte("d"), record.State{Done: true})}, false},
		"an end that came late": {[]*kgo.Record{loggedRecord("m/7", body, record.State{}),
			loggedRecord("m/7", nil, record.State{Until: 1000})}, true},
		"its replay":        {[]*kgo.Record{loggedRecord("r/a/3", body, record.State{})}, true},
		"an earlier replay": {[]*kgo.Record{loggedRecord("r/a/1", body, record.State{})}, false},
		"with another key":  {[]*kgo.Record{loggedRecord("k/a/"+letter.Ref.String(), body, record.State{})}, true},
		"a command": {[]*kgo.Record{loggedRecord(commandPrefix+"x", body, record.State{}),
			loggedRecord(epochKey, body, record.State{})}, false},
	} {
		keys := newLiveKeys()
		for _, r := range x.records {
			keys.note(r)
		}
		if got := keys.hasOne([]int32{0, 1}, letter); got != x.lives {
			t.Errorf("%s: it lives: %v, want %v", name, got, x.lives)
		}
		if keys.hasOne([]int32{0}, letter) {
			t.Errorf("%s: it lives in a partition that has nothing", name)
		}
		if len(x.records) > 0 && string(x.records[0].Key) == epochKey && len(keys.live) > 0 {
			t.Errorf("%s: who owns the log is taken for a message", name)
		}
	}
}
