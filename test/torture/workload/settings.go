package workload

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/history"
)

// Roles of a process. An app is producers and consumers around a broker that only one process can own.
const (
	RoleConsumer = "consumer"
	RoleProducer = "producer"
	RoleApp      = "app"
)

// Settings say what one process does. They travel to it as JSON.
type Settings struct {
	Role   string   `json:"role"`
	Topic  string   `json:"topic"`
	Groups []string `json:"groups,omitempty"`
	Seed   uint64   `json:"seed"`
	Rate   int      `json:"rate,omitempty"`
	// Level is that of every publish. Defaults to the broker's own.
	Level driver.Durability `json:"level,omitempty"`
	// Workers is how many an app has. Defaults to 1.
	Workers int `json:"workers,omitempty"`
	// Clients is how many brokers a process opens, each with connections of its own. Defaults to 1.
	Clients       int           `json:"clients,omitempty"`
	Lease         time.Duration `json:"lease,omitempty"`
	Concurrency   int           `json:"concurrency,omitempty"`
	MaxAttempts   int           `json:"max_attempts,omitempty"`
	MaxDeliveries int           `json:"max_deliveries,omitempty"`
}

// Host is the process around the work.
type Host struct {
	Broker *ferry.Broker
	Log    *history.Writer
	// Instance is who a consumer is to the broker, and whose the ids and keys of a producer are. Defaults to the name of
	// the process.
	Instance string
	// Habits are how handlers behave.
	Habits *Habits
	// Pass is called where a stopped process would hang. May be nil.
	Pass func()
	// Drain is closed when an app is to publish no more, and to end when nothing is left. Nil: never.
	Drain <-chan struct{}
}

// Run does the work of a process until ctx ends.
func (s Settings) Run(ctx context.Context, h Host) error {
	h.Instance = cmp.Or(h.Instance, h.Log.Process())
	if h.Pass == nil {
		h.Pass = func() {}
	}
	switch s.Role {
	case RoleProducer:
		return (&Producer{Settings: s, Host: h}).Run(ctx)
	case RoleConsumer:
		return (&Consumer{Settings: s, Host: h}).Run(ctx)
	case RoleApp:
		return s.runApp(ctx, h)
	}
	return fmt.Errorf("no role %q; there are %s, %s and %s", s.Role, RoleConsumer, RoleProducer, RoleApp)
}
