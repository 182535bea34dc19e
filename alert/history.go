package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/uuid7"
)

// Entry is something that happened.
type Entry struct {
	At       time.Time `json:"at"`
	Rule     string    `json:"rule"`
	Subject  string    `json:"subject"`
	Severity Severity  `json:"severity"`
	// What is "fired", "resolved", "acknowledged" or "raised".
	What string `json:"what"`
	Text string `json:"text,omitempty"`
	// Messages are ids that an event is about.
	Messages []string `json:"messages,omitempty"`
}

// historyBucket is not that of the alerts: however much happens, they have room.
var historyBucket = bucket + ".history"

// historyFor is how long entries are kept.
const historyFor = 7 * 24 * time.Hour

// record adds an entry. Names are such that the newest comes first.
func record(ctx context.Context, kv driver.KV, e Entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("history/%019d-%s", math.MaxInt64-e.At.UnixNano(), uuid7.New(e.At))
	return kv.Apply(ctx, historyBucket, driver.KVOptions{}, driver.Write{Name: name, Data: data, TTL: historyFor,
		Quiet: true})[0].Err
}

// History returns what happened in the last 7 days, the newest first, at most limit entries.
func History(ctx context.Context, b *ferry.Broker, limit int) ([]Entry, error) {
	var found []Entry
	err := list(ctx, b.Driver().KV(), historyBucket, "history/", limit, func(v driver.Value) error {
		var e Entry
		if err := json.Unmarshal(v.Data, &e); err != nil {
			return err
		}
		found = append(found, e)
		return nil
	})
	return found, err
}
