package ferry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/ferrymq/ferry"
)

func TestPublishedHookSeesEveryReceipt(t *testing.T) {
	var events []ferry.Event
	b := newBroker(t, nil, ferry.Options{Hooks: ferry.Hooks{Published: func(_ context.Context, e ferry.Event) {
		e.Message = e.Message.Clone() // it is used again
		events = append(events, e)
	}}})
	if _, err := ferry.Publish(t.Context(), b, "orders", 1, ferry.Key("k")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.PublishBatch(t.Context(), []*ferry.Message{{Topic: "a"}, {Topic: "b"}}); err != nil {
		t.Fatal(err)
	}
	var topics []string
	for _, e := range events {
		topics = append(topics, e.Topic)
		if e.Err != nil || e.Receipt.ID != e.Message.ID || e.Message.ID == "" {
			t.Errorf("event %+v", e)
		}
	}
	if got := strings.Join(topics, " "); got != "orders a b" {
		t.Errorf("events of topics %q", got)
	}
}

func TestAuthorizeHookRefuses(t *testing.T) {
	secret := errors.New("only the billing team may")
	b := newBroker(t, nil, ferry.Options{Hooks: ferry.Hooks{Authorize: func(_ context.Context, a ferry.Access) error {
		switch {
		case a.Topic == "billing" && a.Group == "" && a.Message.Key == "k":
			return secret
		case a.Topic == "broken":
			panic("mend me")
		}
		return nil
	}}})
	for topic, want := range map[string]error{"billing": secret, "broken": ferry.ErrRefused, "orders": nil} {
		_, err := ferry.Publish(t.Context(), b, topic, 1, ferry.Key("k"))
		if !errors.Is(err, want) || want != nil && !errors.Is(err, ferry.ErrRefused) {
			t.Errorf("%s: error %v, want %v", topic, err, want)
		}
	}
	if topics, _ := b.Driver().Topics(t.Context()); len(topics) != 1 {
		t.Errorf("refused publishes were stored: %v", topics)
	}
}

func TestPanickingHookHarmsNothing(t *testing.T) {
	var log bytes.Buffer
	b := newBroker(t, nil, ferry.Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Hooks:  ferry.Hooks{Published: func(context.Context, ferry.Event) { panic("boom") }},
	})
	if _, err := ferry.Publish(t.Context(), b, "orders", 1); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "boom") || !strings.Contains(log.String(), "hook=Published") {
		t.Errorf("the log does not name the hook: %s", log.String())
	}
}
