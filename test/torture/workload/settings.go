package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/test/torture/history"
)

// Roles of a process.
const (
	RoleConsumer = "consumer"
	RoleProducer = "producer"
)

// Settings say what one process does. They travel to it as JSON.
type Settings struct {
	Role          string        `json:"role"`
	Topic         string        `json:"topic"`
	Groups        []string      `json:"groups,omitempty"`
	Seed          uint64        `json:"seed"`
	Rate          int           `json:"rate,omitempty"`
	Lease         time.Duration `json:"lease,omitempty"`
	Concurrency   int           `json:"concurrency,omitempty"`
	MaxAttempts   int           `json:"max_attempts,omitempty"`
	MaxDeliveries int           `json:"max_deliveries,omitempty"`
}

// Run does the work of a process until ctx ends. Habits are for consumers; pass is called where a stopped process
// would hang, and may be nil.
func (s Settings) Run(ctx context.Context, b *ferry.Broker, log *history.Writer, h *Habits, pass func()) error {
	switch s.Role {
	case RoleProducer:
		p := Producer{Broker: b, Log: log, Topic: s.Topic, Seed: s.Seed, Rate: s.Rate, Pass: pass}
		return p.Run(ctx)
	case RoleConsumer:
		c := Consumer{Settings: s, Broker: b, Log: log, Habits: h, Pass: pass}
		return c.Run(ctx)
	}
	return fmt.Errorf("no role %q; there are %s and %s", s.Role, RoleConsumer, RoleProducer)
}
