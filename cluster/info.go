package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// membersBucket holds one value for each incarnation of a member: <name>/<incarnation>.
const membersBucket = driver.MembersBucket

// Info is what a member says of itself with each beat.
type Info struct {
	Name string `json:"name"`
	// Incarnation tells two processes of one name apart: a restart has another.
	Incarnation string            `json:"incarnation"`
	Host        string            `json:"host"`
	PID         int               `json:"pid"`
	Version     string            `json:"version,omitempty"`
	Address     string            `json:"address,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	// Started is when it joined, by its own clock, and Uptime how long ago that was at its last beat.
	Started time.Time     `json:"started"`
	Uptime  time.Duration `json:"uptime"`
	// Beat is how often it says so. Without one for three of them it is gone.
	Beat time.Duration `json:"beat"`
	// CPU is the share of its processors that it used since the beat before, from 0 to 1, and Memory what it holds, in
	// bytes; zero: not known.
	CPU     float64      `json:"cpu,omitempty"`
	Memory  int64        `json:"memory,omitempty"`
	Workers []WorkerInfo `json:"workers,omitempty"`
	// Figures are what Options.Figures told.
	Figures map[string]float64 `json:"figures,omitempty"`
	// Running are the messages in a handler, the 20 that have run the longest.
	Running []RunningInfo `json:"running,omitempty"`

	// LastBeat is when the broker had its last beat, by the broker's clock, and Silence how long ago that was.
	LastBeat time.Time     `json:"-"`
	Silence  time.Duration `json:"-"`
	// Shared says that another living member has the same name: give each its own.
	Shared bool `json:"-"`
}

// WorkerInfo is one worker of a member.
type WorkerInfo struct {
	Instance    string        `json:"instance"`
	Concurrency int           `json:"concurrency"`
	Running     int           `json:"running"`
	Zombies     int           `json:"zombies,omitempty"`
	Handlers    []HandlerInfo `json:"handlers,omitempty"`
	// Omitted is how many handlers more there are than a beat has room for.
	Omitted int `json:"omitted,omitempty"`
}

// HandlerInfo is one handler of a worker. Rates are those of the last minute.
type HandlerInfo struct {
	Topic string       `json:"topic"`
	Group string       `json:"group"`
	State worker.State `json:"state"`
	// Err is the last error of the broker, if there was one.
	Err   string `json:"err,omitempty"`
	Quiet bool   `json:"quiet,omitempty"`

	Running int    `json:"running"`
	Waiting int    `json:"waiting"`
	Keys    int    `json:"keys,omitempty"` // of which something is held
	Acked   uint64 `json:"acked"`
	Retried uint64 `json:"retried"`
	Dead    uint64 `json:"dead"`
	Dropped uint64 `json:"dropped"`
	// Emergencies are dead letters that went to the emergency file.
	Emergencies uint64  `json:"emergencies,omitempty"`
	PerSecond   float64 `json:"per_second"`
	ErrorRate   float64 `json:"error_rate"`
	// Mean is how long handlers took on average.
	Mean time.Duration `json:"mean"`
	// Recent is what rates were reckoned from.
	Recent RecentInfo `json:"recent,omitzero"`
}

// RecentInfo counts what became of messages in the last minute, so that it can be added up over members.
type RecentInfo struct {
	Handled  uint64 `json:"handled,omitempty"`
	Failed   uint64 `json:"failed,omitempty"`
	Retried  uint64 `json:"retried,omitempty"`
	Timeouts uint64 `json:"timeouts,omitempty"`
	// Latencies is how long handlers took, and Waits how long messages waited for one.
	Latencies worker.Histogram `json:"latencies,omitzero"`
	Waits     worker.Histogram `json:"waits,omitzero"`
}

// RunningInfo is one message in a handler.
type RunningInfo struct {
	Topic   string        `json:"topic"`
	Group   string        `json:"group"`
	ID      string        `json:"id"`
	Key     string        `json:"key,omitempty"`
	Attempt int           `json:"attempt"`
	For     time.Duration `json:"for"`
	// Zombie: the message was settled or lost, and the handler goes on.
	Zombie bool `json:"zombie,omitempty"`
}

// Member names the member for Tell: Name, or Name/Incarnation where the name is shared.
func (i Info) Member() string {
	if i.Shared {
		return i.Name + "/" + i.Incarnation
	}
	return i.Name
}

// Health is that of the handler that fares worst: starting, reconnecting, stopping, stopped, quiet or ok. Idle: there
// is no handler.
func (i Info) Health() string {
	all := []string{string(worker.Reconnecting), string(worker.Starting), string(worker.Stopping), string(worker.Stopped),
		"quiet", string(worker.OK)}
	worst := len(all)
	for _, w := range i.Workers {
		for _, h := range w.Handlers {
			state := string(h.State)
			if h.Quiet && h.State == worker.OK {
				state = "quiet"
			}
			if at := slices.Index(all, state); at >= 0 {
				worst = min(worst, at)
			}
		}
	}
	if worst == len(all) {
		return "idle"
	}
	return all[worst]
}

// Members returns who lives, in order of names. A member that was killed is gone after three of its beats, one that
// left at once. A process that was started again takes its name over at once: an earlier one of that name is listed
// only if it has been heard of since.
func Members(ctx context.Context, b *ferry.Broker) ([]Info, error) {
	if b == nil {
		return nil, driver.NewError(ferry.ErrInvalid, "the broker is nil", "open one first, with open.URL for example", nil)
	}
	return members(ctx, b.Driver().KV(), "")
}

// members returns those whose value has a prefix.
func members(ctx context.Context, kv driver.KV, prefix string) ([]Info, error) {
	values, err := listAll(ctx, kv, membersBucket, prefix)
	if err != nil {
		return nil, err
	}
	newest := map[string]uint64{} // by name, the epoch of who joined last
	for _, v := range values {
		name, _, _ := strings.Cut(v.Name, "/")
		newest[name] = max(newest[name], v.Epoch)
	}
	var all []Info
	living := map[string]int{}
	for _, v := range values {
		name, _, _ := strings.Cut(v.Name, "/")
		var i Info
		if v.Revision < newest[name] || json.Unmarshal(v.Data, &i) != nil || i.Name != name {
			continue // superseded, or no member
		}
		i.LastBeat, i.Silence = v.Written, max(0, lifetime(i.Beat)-v.Left)
		living[name]++
		all = append(all, i)
	}
	for at := range all {
		all[at].Shared = living[all[at].Name] > 1
	}
	return all, nil
}

// listAll returns every value of a bucket whose name has a prefix.
func listAll(ctx context.Context, kv driver.KV, bucket, prefix string) ([]driver.Value, error) {
	var all []driver.Value
	for q := (driver.KVQuery{Bucket: bucket, Prefix: prefix, Limit: driver.MaxLimit}); ; {
		page, err := kv.List(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Values...)
		if q.After = page.Next; page.Next == "" {
			return all, nil
		}
	}
}

// lifetime is how long a member is believed without a beat.
func lifetime(beat time.Duration) time.Duration { return 3 * beat }
