package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/gateway"
)

// shouted is a filter that writes in capitals, and undoes it unless the body is damaged or nobody is at home.
type shouted struct{ away int }

func (*shouted) Names() []string { return []string{"shout"} }

func (*shouted) Apply(_ context.Context, body []byte, _ codec.About) ([]byte, string, error) {
	return []byte(strings.ToUpper(string(body))), "shout", nil
}

func (f *shouted) Undo(_ context.Context, body []byte, _ string, _ codec.About, _ int) ([]byte, error) {
	if f.away > 0 {
		f.away--
		return nil, codec.ErrUnavailable
	}
	if strings.Contains(string(body), "DAMAGED") {
		return nil, errors.New("the body is damaged")
	}
	return []byte(strings.ToLower(string(body))), nil
}

// filtered runs a test with a gateway to a broker with a filter, in virtual time.
func filtered(t *testing.T, f *shouted, test func(t *testing.T, c client, d driver.Driver)) {
	synctest.Test(t, func(t *testing.T) {
		b, err := memory.Open(t.Context(),
			memory.Options{Broker: ferry.Options{Logger: slog.New(slog.DiscardHandler), Filters: []codec.Filter{f}}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := gateway.New(b, gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = g.Close(context.Background()), b.Close(context.Background()) }()
		for _, topic := range []string{"jobs", "next"} {
			if err := b.Driver().EnsureGroup(t.Context(), topic, "g", driver.GroupOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		test(t, client{t, g, token(nil)}, b.Driver())
	})
}

// A client gets what was published, and follow-ups pass the filters, too: in the broker all bodies are as the filter
// made them.
func TestFilters(t *testing.T) {
	filtered(t, &shouted{}, func(t *testing.T, c client, d driver.Driver) {
		c.ok("/v1/topics/jobs/messages", "hello")
		m := c.receive("")[0]
		if m["body"] != "hello" || m["headers"] != nil {
			t.Errorf("received %v", m)
		}
		c.settle(m["lease"], `, "emit": [{"topic": "next", "body": "follow"}]`)
		p, err := d.Browse(t.Context(), driver.Query{Topic: "next", Group: "g", State: driver.StateReady})
		if err != nil || len(p.Entries) != 1 || string(p.Entries[0].Message.Body) != "FOLLOW" {
			t.Errorf("the follow-up lies as %+v, %v", p.Entries, err)
		}
		if got := objects(c.ok("/v1/topics/next/groups/g/receive", "")["messages"]); got[0]["body"] != "follow" {
			t.Errorf("received %v", got)
		}
	})
}

// What cannot be undone becomes a dead letter as it is stored; what can be later comes later.
func TestFiltersThatFail(t *testing.T) {
	filtered(t, &shouted{away: 1}, func(t *testing.T, c client, d driver.Driver) {
		c.ok("/v1/topics/jobs/messages", "late")
		start := time.Now()
		if m := c.receive(`{"wait": "20s"}`); len(m) != 0 {
			t.Fatalf("received %v", m)
		}
		if m := c.receive(`{"wait": "20s"}`); len(m) != 1 || m[0]["body"] != "late" || m[0]["attempt"] != 2.0 ||
			time.Since(start) == 0 {
			t.Fatalf("received %v", m)
		}
		c.ok("/v1/topics/jobs/messages", "damaged")
		if m := c.receive(""); len(m) != 0 {
			t.Fatalf("received %v", m)
		}
		p, err := d.Browse(t.Context(), driver.Query{Topic: "jobs", Group: "g", State: driver.StateDead})
		if err != nil || len(p.Entries) != 1 || string(p.Entries[0].Message.Body) != "DAMAGED" ||
			p.Entries[0].Dead.Reason != driver.ReasonInvalidMessage {
			t.Errorf("dead letters: %+v, %v", p.Entries, err)
		}
	})
}
