// Command server serves a handler of its own behind Ferry's logins: without a token it answers 401, with one it knows
// who asks and what they may do.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/server"
)

// orders answers who may see orders.
func orders(w http.ResponseWriter, r *http.Request) {
	who := auth.From(r.Context())
	_, _ = fmt.Fprintf(w, "%s may view orders: %v, mail: %v", who, who.May(auth.View, "orders"),
		who.May(auth.View, "mail"))
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	broker, err := memory.Open(ctx, memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())
	s, err := server.New(ctx, server.Options{Broker: broker, Address: "127.0.0.1:0",
		Mounts: []server.Mount{{Path: "/orders", Handler: http.HandlerFunc(orders)}}})
	if err != nil {
		log.Fatal(err)
	}
	stopped := make(chan error)
	go func() { stopped <- s.Run(ctx) }()

	_, token, err := auth.NewTokens(broker).Create(ctx, auth.TokenRequest{Name: "demo",
		Scopes: []auth.Scope{auth.View}, Topics: []string{"orders"}})
	if err != nil {
		log.Fatal(err)
	}
	ask(s.URL()+"/orders", "")
	ask(s.URL()+"/orders", token.Reveal())
	stop()
	if err := <-stopped; err != nil {
		log.Fatal(err)
	}
}

// ask prints what the server answers.
func ask(url, token string) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		fmt.Println(answer.Status)
		return
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
}
