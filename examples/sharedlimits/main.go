// Command sharedlimits has two programs share a limit by the URL of their server alone: what a user sends through one
// of them counts in the other, too.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/examples/internal/gatewayserver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/open"
)

func main() {
	ctx := context.Background()
	url, done := gatewayserver.Serve(ctx)
	defer done()

	// From here on it is two programs, which know a URL and nothing else.
	web, closeWeb := program(ctx, url)
	defer closeWeb()
	app, closeApp := program(ctx, url)
	defer closeApp()
	for i := 1; i <= 2; i++ {
		publish(ctx, "web", web)
		publish(ctx, "app", app)
	}
}

// program opens the broker and the guards that belong to a URL: 3 messages of a user in an hour, wherever they are
// sent.
func program(ctx context.Context, url string) (*ferry.Broker, func()) {
	store, err := open.Guards(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := guard.NewLimiter(store,
		guard.LimiterOptions{Limits: []guard.Limit{{Name: "publish", Rule: guard.Rule{Limit: 3, Window: time.Hour}}}})
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
