// Command alerts watches a queue: when too much waits an alert fires, and when a worker has caught up it is over. Then
// a circuit breaker opens, and both channels are told. The vendors are servers of this process that print what arrived.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/slack"
	"github.com/ferrymq/ferry/notify/sms"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())
	arrived := make(chan string, 10)
	vendors := httptest.NewServer(vendor(arrived))
	defer vendors.Close()
	hub, watch := build(broker, vendors.URL)

	var running sync.WaitGroup
	run := func(what func(context.Context) error) {
		running.Go(func() {
			if err := what(ctx); err != nil {
				log.Fatal(err)
			}
		})
	}
	run(hub.Run)
	run(watch.Run)

	for i := range 5 {
		if _, err := ferry.Publish(ctx, broker, "orders", i); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("five orders wait:")
	fmt.Println(" ", <-arrived)
	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "orders", func(context.Context, *ferry.Msg[int]) error { return nil })
	run(w.Run)
	fmt.Println("a worker has handled them:")
	fmt.Println(" ", <-arrived)

	fmt.Println("a breaker opens:")
	watch.GuardHook()(ctx, guard.Event{Kind: guard.EventState, Name: "billing", State: guard.StateOpen})
	both := []string{<-arrived, <-arrived}
	slices.Sort(both)
	fmt.Println(" ", strings.Join(both, "\n  "))
	stop()
	running.Wait()
}

// build makes a hub with two channels, and a watch with two rules.
func build(broker *ferry.Broker, vendors string) (*notify.Hub, *alert.Watch) {
	local := notify.HTTP{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	chat, err := slack.New(slack.Options{HTTP: local, Webhooks: map[string]notify.Robot{"ops": {URL: vendors + "/slack"}}})
	if err != nil {
		log.Fatal(err)
	}
	texts, err := sms.NewGateway(sms.GatewayOptions{HTTP: local, URL: vendors + "/sms", Body: `{{"text": "{title}"}}`})
	if err != nil {
		log.Fatal(err)
	}
	hub, err := notify.New(broker, notify.Options{Channels: map[string]notify.Channel{"slack": chat, "sms": texts}})
	if err != nil {
		log.Fatal(err)
	}
	collector, err := monitor.NewCollector(broker,
		monitor.CollectorOptions{Options: monitor.Options{Topics: []string{"orders"}}})
	if err != nil {
		log.Fatal(err)
	}
	watch, err := alert.New(broker, alert.Options{Hub: hub, Collector: collector, Every: 100 * time.Millisecond,
		Channels: map[string][]notify.Target{
			"slack": {{Channel: "slack", To: "ops"}},
			"sms":   {{Channel: "sms", To: "+8613800138000"}},
		},
		Rules: []alert.Rule{
			{Name: "queue depth", When: "queue_depth > threshold", Threshold: 4, Channels: []string{"slack"},
				Text: "{topic} has {queue_depth:d} messages, more than {threshold:d}"},
			{Name: alert.BreakerOpen, Severity: alert.Critical, Text: "the breaker {name} is open"},
		}})
	if err != nil {
		log.Fatal(err)
	}
	return hub, watch
}

// vendor answers as Slack and an SMS gateway do.
func vendor(arrived chan<- string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m struct{ Text string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			http.Error(w, "invalid_payload", http.StatusBadRequest)
			return
		}
		text, _, _ := strings.Cut(m.Text, " after ") // how long it lasted differs
		arrived <- fmt.Sprintf("%s got %q", strings.TrimPrefix(r.URL.Path, "/"), text)
		_, _ = fmt.Fprint(w, "ok")
	}
}
