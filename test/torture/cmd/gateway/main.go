// Command gateway is the server of a torture run of the remote driver: a broker behind HTTP. The harness starts and
// kills it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/open"
)

func main() {
	url := flag.String("url", "", "URL of the broker")
	listen := flag.String("listen", "127.0.0.1:0", "address to listen at")
	flag.Parse()
	if err := serve(*url, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// serve answers whoever asks, until it is killed. It prints its address when it does.
func serve(url, address string) error {
	b, err := open.URL(context.Background(), url, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	g, err := gateway.New(b, gateway.Options{})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	who := &auth.Identity{Kind: auth.KindToken, Name: "torture", Grants: []auth.Grant{{Role: auth.Administrator}}}
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	}))
}
