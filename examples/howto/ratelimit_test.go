package howto_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

func TestRateLimit(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		call := func(context.Context, *ferry.Msg[int]) error { return nil }
		w := worker.New(k.Broker, worker.Options{})

		//snippet:begin limit
		// A partner allows 10 calls a second in all, and 2 of one user.
		limit, err := guard.NewLimiter(guard.NewMemory(guard.MemoryOptions{}), guard.LimiterOptions{Limits: []guard.Limit{
			{Name: "partner", Key: guard.Constant("all"), Rule: guard.Rule{Limit: 10, Window: time.Second}},
			{Name: "user", Rule: guard.Rule{Limit: 2, Window: time.Second}}, // by the message's key
		}})
		if err != nil {
			t.Fatal(err)
		}
		worker.Handle(w, "calls", call, worker.Use(limit.Middleware()))
		//snippet:end

		for i := range 6 {
			if _, err := ferry.Publish(t.Context(), k.Broker, "calls", i, ferry.Key("ann")); err != nil {
				t.Fatal(err)
			}
		}
		k.Start(w)
		k.ExpectAcked("calls", 2)
		k.Drain()
		k.ExpectAcked("calls", 6)
		k.ExpectRetried("calls", 0)
	})
}

// partner answers the first call with 429, and all others well.
type partner struct{ calls, closed int }

func (p *partner) RoundTrip(*http.Request) (*http.Response, error) {
	p.calls++
	if p.calls == 1 {
		return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"7"}}, Body: p.body()}, nil
	}
	return &http.Response{StatusCode: 200, Body: p.body()}, nil
}

func (p *partner) body() io.ReadCloser { return &answer{strings.NewReader("{}"), p} }

type answer struct {
	io.Reader
	of *partner
}

func (a *answer) Close() error { a.of.closed++; return nil }

func TestAnswer429(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		p := new(partner)
		client := &http.Client{Transport: p}
		w := worker.New(k.Broker, worker.Options{})

		//snippet:begin http
		worker.Handle(w, "calls", func(ctx context.Context, m *ferry.Msg[string]) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Value, nil)
			if err != nil {
				return err
			}
			resp, err := client.Do(req)
			if err := guard.HTTP(resp, err); err != nil {
				return err // the body is closed already
			}
			return resp.Body.Close() // when what it says is read
		})
		//snippet:end

		if _, err := ferry.Publish(t.Context(), k.Broker, "calls", "https://partner.example/"); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		k.Start(w)
		k.Drain()
		k.ExpectRetried("calls", 1)
		k.ExpectAcked("calls", 1)
		if took := time.Since(begin); took < 7*time.Second || p.closed != 2 {
			t.Fatalf("%v, %d of %d bodies are closed", took, p.closed, p.calls)
		}
	})
}
