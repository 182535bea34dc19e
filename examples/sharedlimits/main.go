// Command sharedlimits has two programs share a limit by the URL of their server alone: what a user sends through one of them counts in
// the other, too.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/open"
)

func main() {
	ctx := context.Background()
	address, done := serve(ctx)
	defer done()

	// From here on it is two programs, which know an address and nothing else.
	web, closeWeb := program(ctx, "ferry://"+address)
	defer closeWeb()
	app, closeApp := program(ctx, "ferry://"+address)
	defer closeApp()
	for i := 1; i <= 2; i++ {
		publish(ctx, "web", web)
		publish(ctx, "app", app)
	}
}

// program opens the broker and the guards that belong to a URL: 3 messages of a user in an hour, wherever they are sent.
func program(ctx context.Context, url string) (*ferry.Broker, func()) {
	store, err := open.Guards(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{{Name: "publish", Rule: guard.Rule{Limit: 3, Window: time.Hour}}}})
	if err != nil {
		log.Fatal(err)
	}
	broker, err := open.URL(ctx, url, ferry.Options{Hooks: ferry.Hooks{Authorize: limiter.Authorize}})
	if err != nil {
		log.Fatal(err)
	}
	return broker, func() {
		_ = broker.Close(ctx)
		_ = store.Close(ctx)
	}
}

func publish(ctx context.Context, from string, b *ferry.Broker) {
	_, err := ferry.Publish(ctx, b, "chat", "hello", ferry.Key("ann"))
	var refusal *guard.Refusal
	switch {
	case err == nil:
		fmt.Printf("ann through %s: published\n", from)
	case errors.As(err, &refusal):
		fmt.Printf("ann through %s: %s\n", from, refusal.Reason)
	default:
		log.Fatal(err)
	}
}

// serve serves a broker and a guard store on this machine, as ferry serve does, and returns its address and what ends it. Whoever can
// reach it may do everything: a real server asks for a token first.
func serve(ctx context.Context) (address string, done func()) {
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	store := guard.NewMemory(guard.MemoryOptions{})
	g, err := gateway.New(broker, gateway.Options{Guards: store})
	if err != nil {
		log.Fatal(err)
	}
	everybody := &auth.Identity{Kind: auth.KindLocal, Name: "everybody", Grants: []auth.Grant{{Role: auth.Operator}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), everybody)))
	})}
	go func() { _ = server.Serve(l) }()
	return l.Addr().String(), func() {
		_ = g.Close(ctx)
		_ = server.Close()
		_ = broker.Close(ctx)
		_ = store.Close(ctx)
	}
}
