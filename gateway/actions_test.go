package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/internal/frame"
)

// Who manages something over frames, or sets up a push, stands in the chain of actions, with what came of it, also if
// it was denied. What a worker does is not recorded, and neither is a look.
func TestActions(t *testing.T) {
	b, err := memory.Open(t.Context(), memory.Options{Broker: ferry.Options{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	actions := auth.NewActions(b)
	g, err := gateway.New(b, gateway.Options{Actions: actions})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = g.Close(context.Background()), b.Close(context.Background()) }()
	ann := token(nil)
	ann.Name = "ann"
	message := &driver.Message{ID: "a", OwnID: true, Topic: "jobs"}
	target := driver.Target{Topic: "jobs", Group: "default", ID: "a"}
	for _, x := range []struct {
		who  *auth.Identity
		name string
		q    frame.Value
	}{
		{ann, frame.CallEnsureGroup, &frame.Group{Topic: "jobs", Group: "default"}},
		{ann, frame.CallPublish, &frame.Publish{Messages: []*driver.Message{message}}},
		{ann, frame.CallPause, &frame.Place{Topic: "jobs", Group: "default", Flag: true}},
		{ann, frame.CallDelete, &frame.Targets{target}},
		{ann, frame.CallPurge, &frame.Place{Topic: "jobs", Group: "default"}},
		{token(without(auth.Operate)), frame.CallPurge, &frame.Place{Topic: "jobs"}},
		{ann, frame.CallDeleteTopic, &frame.Place{Topic: "none"}},
		{token(without(auth.Operate)), frame.CallDelete, &frame.Targets{target}},
		{token(without(auth.Operate)), frame.CallMove, &frame.Moves{{Target: target}}},
		{token(without(auth.Operate)), frame.CallTrim, &frame.Place{Topic: "jobs"}},
		{token(without(auth.Operate)), frame.CallRetain, &frame.Retain{Topic: "jobs"}},
		{token(without(auth.Operate)), frame.CallReplay, &frame.Replay{Topic: "jobs", Group: "default"}},
		{ann, frame.CallAudit, &frame.Place{Topic: "jobs"}},
		{ann, frame.CallAudit, &frame.Place{Topic: "jobs", Flag: true}},
	} {
		_, _ = call(t, g, x.who, x.name, x.q, nil)
	}
	client{t, g, ann}.do(http.MethodPut, "/v1/push/p", `{"topic": "jobs", "url": "https://example.com/", "paused": true}`)
	eve := client{t, g, token(without(auth.Operate))}
	eve.do(http.MethodPut, "/v1/push/p", `{"topic": "jobs", "url": "https://example.com/"}`)
	eve.do(http.MethodDelete, "/v1/push/p", "")
	page, err := actions.List(t.Context(), auth.ActionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range slices.Backward(page.Actions) {
		got = append(got, fmt.Sprint(a.Who, " ", a.What, " ", a.Topic, " ", a.Outcome, " ", a.Count))
	}
	want := []string{
		fmt.Sprint(ann, " group.pause jobs done 0"), fmt.Sprint(ann, " message.delete jobs done 1"),
		fmt.Sprint(ann, " topic.purge jobs done 0"),
		fmt.Sprint(token(nil), " topic.purge jobs denied 0"), fmt.Sprint(ann, " topic.delete none failed 0"),
		fmt.Sprint(token(nil), " message.delete jobs denied 0"), fmt.Sprint(token(nil), " message.move jobs denied 0"),
		fmt.Sprint(token(nil), " topic.trim jobs denied 0"), fmt.Sprint(token(nil), " topic.retain jobs denied 0"),
		fmt.Sprint(token(nil), " group.replay jobs denied 0"), fmt.Sprint(ann, " topic.audit jobs done 0"),
		fmt.Sprint(ann, " push.put jobs done 0"), fmt.Sprint(token(nil), " push.put jobs denied 0"),
		fmt.Sprint(token(nil), " push.delete jobs denied 0"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}
