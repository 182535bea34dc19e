// Command notify sends one notification to three targets: a chat robot that is refused once, a webhook, and a number
// whose provider is down, so that a fallback reaches its owner. The vendors are servers of this process that print
// what arrived.
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
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/notify/dingtalk"
	"github.com/ferrymq/ferry/notify/sms"
	"github.com/ferrymq/ferry/notify/webhook"
	"github.com/ferrymq/ferry/open"
)

// Vendors run on this host, which is allowed here alone: elsewhere private addresses are refused.
var local = notify.HTTP{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())

	vendors := httptest.NewServer(http.HandlerFunc(serve))
	defer vendors.Close()
	hub, err := notify.New(broker, notify.Options{Channels: channels(vendors.URL), Retry: notify.Aggressive})
	if err != nil {
		log.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := hub.Run(ctx); err != nil {
			log.Fatal(err)
		}
	})

	m := notify.NewMessage("Disk of {host} is full", "{left:.1%} is left").WithPriority(notify.Urgent).
		WithVariable("host", "db1").WithVariable("left", 0.021).
		AddTarget(notify.Target{Channel: "dingtalk", To: "ops"}).
		AddWebhook(vendors.URL + "/webhook").
		AddTarget(notify.Target{Channel: "sms", To: "+8613800138000", Fallbacks: []notify.Target{{Channel: "dingtalk",
			To: "owner"}}})
	receipt, err := hub.SendNow(ctx, m)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d of %d targets\n", receipt.Status, receipt.Succeeded, receipt.Total)
	for _, t := range receipt.Targets {
		fmt.Printf("  %s was reached by %s, attempts %d, failed before: %d\n", t.Channel, t.Reached.Channel, t.Attempts,
			len(t.Tried))
	}
	stop()
	running.Wait()
	slices.Sort(arrived)
	fmt.Println("what arrived:")
	for _, line := range arrived {
		fmt.Println(" ", line)
	}
}

func channels(vendors string) map[string]notify.Channel {
	robots, err := dingtalk.New(dingtalk.Options{HTTP: local, Robots: map[string]notify.Robot{
		"ops":   {URL: vendors + "/dingtalk?to=ops", Secret: "secret"},
		"owner": {URL: vendors + "/dingtalk?to=owner", Secret: "secret"},
	}})
	if err != nil {
		log.Fatal(err)
	}
	hooks, err := webhook.New(webhook.Options{HTTP: local, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	if err != nil {
		log.Fatal(err)
	}
	texts, err := sms.NewGateway(sms.GatewayOptions{HTTP: local, URL: vendors + "/sms",
		Body: `{{"to": "{to}", "text": "{title}"}}`})
	if err != nil {
		log.Fatal(err)
	}
	return map[string]notify.Channel{"dingtalk": robots, "webhook": hooks, "sms": texts}
}

var (
	refused atomic.Bool

	mu      sync.Mutex
	arrived []string
)

func note(format string, args ...any) {
	mu.Lock()
	defer mu.Unlock()
	arrived = append(arrived, fmt.Sprintf(format, args...))
}

// serve answers as vendors do.
func serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/sms":
		http.Error(w, "this number does not exist", http.StatusNotFound)
	case "/webhook":
		var p webhook.Payload
		if err := json.NewDecoder(r.Body).Decode(&p); err == nil {
			note("webhook got %q, signed: %t", p.Data.Title, r.Header.Get("Webhook-Signature") != "")
		}
	case "/dingtalk":
		to := r.URL.Query().Get("to")
		if to == "ops" && !refused.Swap(true) {
			_, _ = fmt.Fprint(w, `{"errcode":-1,"errmsg":"busy"}`) // status 200 all the same
			return
		}
		note("dingtalk: %s was told", to)
		_, _ = fmt.Fprint(w, `{"errcode":0,"errmsg":"ok"}`)
	}
}
