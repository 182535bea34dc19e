package cluster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/monitor"
)

func TestAdvise(t *testing.T) {
	t.Parallel()
	type load = cluster.ScaleLoad
	for name, c := range map[string]struct {
		q      monitor.Queue
		p      cluster.ScalePolicy
		want   int
		reason string
	}{
		"deep and slow": {monitor.Queue{Ready: 1001},
			cluster.ScalePolicy{Load: load{Instances: 4, HandlerTime: 6 * time.Second}}, 6, "1001 messages wait"},
		"deep and busy": {monitor.Queue{Ready: 1001, Consumers: 2}, cluster.ScalePolicy{Load: load{CPU: 0.81}},
			3, "CPU of 81%"},
		"deep and old": {monitor.Queue{Ready: 5000, Oldest: 2 * time.Minute, Consumers: 2}, cluster.ScalePolicy{},
			3, "has waited for 2m0s"},
		"one alone": {monitor.Queue{Ready: 50_000, Consumers: 2}, cluster.ScalePolicy{}, 2,
			"50000 messages wait"},
		"exactly the limits": {monitor.Queue{Ready: 1000, Oldest: time.Minute, Consumers: 3},
			cluster.ScalePolicy{Load: load{CPU: 0.8, HandlerTime: 5 * time.Second}}, 3, "neither"},
		"idle": {monitor.Queue{Ready: 99, Consumers: 5},
			cluster.ScalePolicy{Load: load{CPU: 0.29, HandlerTime: 999 * time.Millisecond}}, 4, "all is little"},
		"idle but slow": {monitor.Queue{Consumers: 5}, cluster.ScalePolicy{Load: load{HandlerTime: time.Second}},
			5, "neither"},
		"idle but busy":    {monitor.Queue{Consumers: 5}, cluster.ScalePolicy{Load: load{CPU: 0.3}}, 5, "neither"},
		"as few as may be": {monitor.Queue{Consumers: 2}, cluster.ScalePolicy{}, 2, "as few"},
		"as many as may be": {monitor.Queue{Ready: 5000, Oldest: time.Hour, Consumers: 10}, cluster.ScalePolicy{},
			10, "as many"},
		"not beyond the most": {monitor.Queue{Ready: 5000, Oldest: time.Hour, Consumers: 9}, cluster.ScalePolicy{},
			10, "5000"},
		"below the least": {monitor.Queue{}, cluster.ScalePolicy{Min: 3, Load: load{SinceChange: time.Second}},
			3, "fewer than 3"},
		"above the most": {monitor.Queue{Consumers: 30}, cluster.ScalePolicy{}, 10, "more than 10"},
		"cool-down, more": {monitor.Queue{Ready: 5000, Oldest: time.Hour, Consumers: 4},
			cluster.ScalePolicy{Load: load{SinceChange: 299 * time.Second}}, 4, "nothing is advised"},
		"cool-down, fewer": {monitor.Queue{Consumers: 4},
			cluster.ScalePolicy{Load: load{SinceChange: 299 * time.Second}}, 4, "nothing is advised"},
		"after the cool-down": {monitor.Queue{Ready: 5000, Oldest: time.Hour, Consumers: 4},
			cluster.ScalePolicy{Load: load{SinceChange: 300 * time.Second}}, 6, "5000"},
		"failing": {monitor.Queue{Ready: 5000, Oldest: time.Hour, Consumers: 4},
			cluster.ScalePolicy{Load: load{ErrorRate: 0.5}}, 4, "would not help"},
		"paused": {monitor.Queue{Ready: 5000, Oldest: time.Hour, Consumers: 4, Paused: true},
			cluster.ScalePolicy{}, 4, "paused"},
		"limits of one's own": {monitor.Queue{Ready: 11, Oldest: 2 * time.Second, Consumers: 4},
			cluster.ScalePolicy{Out: cluster.ScaleLimits{Depth: 10, Oldest: time.Second}}, 6, "more than 10"},
		"a Max below the Min": {monitor.Queue{Consumers: 20}, cluster.ScalePolicy{Min: 20}, 20, "as few"},
		"negative is no setting": {monitor.Queue{Consumers: 2},
			cluster.ScalePolicy{Min: -1, Max: -1, Cooldown: -1, MaxErrorRate: -1}, 2, "as few"},
	} {
		a := cluster.Advise(c.q, c.p)
		verdict := cluster.ScaleNone
		switch {
		case c.want > a.Current:
			verdict = cluster.ScaleOut
		case c.want < a.Current:
			verdict = cluster.ScaleIn
		}
		if a.Instances != c.want || a.Verdict != verdict || !strings.Contains(strings.Join(a.Reasons, "; "), c.reason) {
			t.Errorf("%s: %+v, want %d because of %q", name, a, c.want, c.reason)
		}
	}
}

// What members tell of a group is weighed by how much each of them handles.
func TestLoadOf(t *testing.T) {
	t.Parallel()
	handler := func(topic string, perSecond, failed float64, mean time.Duration) cluster.WorkerInfo {
		return cluster.WorkerInfo{Handlers: []cluster.HandlerInfo{
			{Topic: topic, Group: "g", PerSecond: perSecond, ErrorRate: failed, Mean: mean}}}
	}
	all := []cluster.Info{
		{Workers: []cluster.WorkerInfo{handler("orders", 30, 0.1, time.Second), handler("orders", 0, 0, 0)}},
		{Workers: []cluster.WorkerInfo{handler("orders", 10, 0.5, 5*time.Second)}},
		{Workers: []cluster.WorkerInfo{handler("mails", 100, 1, time.Hour)}},
	}
	if got, want := cluster.LoadOf(all, "orders", "g"),
		(cluster.ScaleLoad{Instances: 2, HandlerTime: 2 * time.Second, ErrorRate: 0.2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := cluster.LoadOf(all, "orders", "other"); got != (cluster.ScaleLoad{}) {
		t.Errorf("a group without members: %+v", got)
	}
}
