// Package gatewayserver is the server in examples of programs that open one: a gateway as ferry serve has it, in their
// own process.
package gatewayserver

import (
	"cmp"
	"context"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/open"
)

// Serve serves the broker that FERRY_BROKER names, or one in memory, and a guard store on this machine. It returns the
// URL for programs, and what ends it. Whoever can reach it may do everything: a real server asks for a token first.
func Serve(ctx context.Context) (url string, done func()) {
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
	return "ferry://" + l.Addr().String(), func() {
		ctx := context.WithoutCancel(ctx)
		_ = g.Close(ctx)
		_ = server.Close()
		_ = broker.Close(ctx)
		_ = store.Close(ctx)
	}
}
