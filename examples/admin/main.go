// Command admin shows the admin API: it serves one on a broker inside the process, and asks it what an operator would.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/client"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver/memory"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	broker, err := memory.Open(ctx, memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close(context.Background())
	for i := range 5 {
		if _, err := ferry.Publish(ctx, broker, "orders", i); err != nil {
			log.Fatal(err)
		}
	}
	url, err := serve(ctx, broker)
	if err != nil {
		log.Fatal(err)
	}
	if err := operate(ctx, url); err != nil {
		log.Fatal(err)
	}
}

// serve answers on a port of this machine. Everybody there is an operator: a real server knows its callers by a token
// or a session.
func serve(ctx context.Context, broker *ferry.Broker) (url string, err error) {
	a, err := admin.New(admin.Options{Broker: broker, Actions: auth.NewActions(broker)})
	if err != nil {
		return "", err
	}
	operator := &auth.Identity{Name: "me", Kind: auth.KindLocal, Grants: []auth.Grant{{Role: auth.Administrator}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.ServeHTTP(w, r.WithContext(auth.With(r.Context(), operator)))
		})}
	go func() {
		if err := a.Run(ctx); err != nil {
			log.Print(err)
		}
	}()
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Print(err)
		}
	}()
	return "http://" + l.Addr().String(), nil
}

// operate looks why nothing happens, counts what a purge would delete, and has it done.
func operate(ctx context.Context, url string) error {
	c, err := client.New(client.Options{URL: url})
	if err != nil {
		return err
	}
	var topic api.Topic
	if err := c.Request(ctx, http.MethodGet, "/topics/orders", nil, nil, &topic); err != nil {
		return err
	}
	fmt.Println("orders:", topic.Groups[0].Why)
	for _, dry := range []bool{true, false} {
		op, err := c.Purge(ctx, "orders", api.Purge{Bulk: api.Bulk{DryRun: dry},
			SelectMessages: api.SelectMessages{Where: "json >= 2"}})
		if err != nil {
			return err
		}
		if op, err = c.WaitOperation(ctx, op.ID); err != nil {
			return err
		}
		fmt.Printf("purge: %s, %d messages, dry run: %v\n", op.State, op.Done, op.DryRun)
	}
	actions, err := c.Actions(ctx, client.Page{Limit: 1})
	if err != nil {
		return err
	}
	last := actions.Actions[0]
	fmt.Printf("%s did %s on %s where %s\n", last.Who, last.What, last.Topic, last.Filter)
	return nil
}
