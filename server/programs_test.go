package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	driverremote "github.com/ferrymq/ferry/driver/remote"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/worker"
)

// TestPrograms: a program with a token works through the server as on the broker itself, beyond the rate for people,
// until the server stops, which does not wait for the program.
func TestPrograms(t *testing.T) {
	t.Parallel()
	b := memoryBroker(t)
	g, err := gateway.New(b, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Options{Broker: b, Limits: Limits{Rate: 0.001}, StopTimeout: time.Hour, Mounts: []Mount{
		{Path: "/v1/", Handler: g, MaxBody: g.MaxBody(), Programs: true, Stop: g.Close},
	}})
	_, secret, err := auth.NewTokens(b).Create(t.Context(), auth.TokenRequest{Name: "billing",
		Topics: []string{"orders"},
		Scopes: []auth.Scope{auth.Publish, auth.Consume}})
	if err != nil {
		t.Fatal(err)
	}
	remoteURL := strings.Replace(r.URL(), "http", "ferry", 1)
	if _, err := driverremote.Open(t.Context(), driverremote.Options{URL: remoteURL}); !errors.Is(err,
		ferry.ErrRefused) {
		t.Errorf("without a token: got %v, want ErrRefused", err)
	}
	quiet := ferry.Options{Logger: slog.New(slog.DiscardHandler)}
	program, err := driverremote.Open(t.Context(), driverremote.Options{URL: remoteURL, Token: secret.Reveal(),
		Broker: quiet})
	if err != nil {
		t.Fatal(err)
	}
	const orders = 20
	handled := make(chan int, orders)
	w := worker.New(program, worker.Options{})
	worker.Handle(w, "orders", func(_ context.Context, m *ferry.Msg[int]) error {
		handled <- m.Value
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for i := range orders {
		if _, err := ferry.Publish(ctx, program, "orders", i); err != nil {
			t.Fatal(err)
		}
		<-handled
	}
	if _, err := ferry.Publish(ctx, program, "salaries", 1); !errors.Is(err, ferry.ErrRefused) {
		t.Errorf("a publish to another topic: got %v, want ErrRefused", err)
	}
	if err := r.stop(); err != nil {
		t.Errorf("the server stopped while a program waited: %v", err)
	}
	stop()
	<-ended // it could not say that it leaves
	_ = program.Close(context.Background())
	if strings.Contains(r.logs.String(), secret.Reveal()) {
		t.Error("the token stands in the log")
	}
}
