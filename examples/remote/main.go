// Command remote has two programs share one broker: one serves it over HTTP, the other opens it as ferry://, with the same code as any
// other broker.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	address, done := serve(ctx)
	defer done()

	// From here on it is another program, which knows an address and nothing else.
	broker, err := open.URL(ctx, "ferry://"+address)
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())
	billed := make(chan string)
	w := worker.New(broker, worker.Options{})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[string]) error {
		billed <- m.Value
		return nil
	})
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			log.Fatal(err)
		}
	})
	for _, order := range []string{"a ferry boat", "two oars"} {
		if _, err := ferry.Publish(ctx, broker, "orders", order, ferry.Key("ann")); err != nil {
			log.Fatal(err)
		}
		fmt.Println("billed over HTTP:", <-billed)
	}
}

// serve serves a broker on this machine, and returns its address and what ends it. Whoever can reach it may do everything: a real
// server asks for a token first.
func serve(ctx context.Context) (address string, done func()) {
	broker, err := open.URL(ctx, cmp.Or(os.Getenv("FERRY_BROKER"), "memory://"))
	if err != nil {
		log.Fatal(err)
	}
	g, err := gateway.New(broker, gateway.Options{})
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
		_ = g.Close(context.Background())
		_ = server.Close()
		_ = broker.Close(context.Background())
	}
}
