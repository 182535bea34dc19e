package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/internal/pipetest"
	"github.com/ferrymq/ferry/internal/runtest"
)

// A client that stops reading holds no more than its credit, and is cut off; what it held goes back, uncounted.
func TestStreamThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := newGateway(t, gateway.Options{})
		c := client{t, g, token(nil)}
		const credit, all = 10, 100
		for i := range all {
			c.ok("/v1/topics/jobs/messages", fmt.Sprint(i))
		}
		l := pipetest.Listen()
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), c.who)))
		})}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = s.Serve(l)
		}()
		conn, err := l.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET /v1/topics/jobs/groups/default/stream?max=%d HTTP/1.1\r\nHost: h\r\n\r\n",
			credit); err != nil {
			t.Fatal(err)
		}
		group := func() driver.GroupStats {
			s, err := b.Driver().Stats(t.Context(), "jobs")
			if err != nil {
				t.Fatal(err)
			}
			return s.Groups[0]
		}
		buffer := make([]byte, 200) // the head of the answer, and no delivery
		if _, err := conn.Read(buffer); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if got := group(); got.Inflight > credit || got.Consumers != 1 {
			t.Errorf("while it is not read: %+v", got)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := group(); got.Ready != all || got.Inflight != 0 || got.Consumers != 0 {
			t.Errorf("after it was cut off: %+v", got)
		}
		for _, d := range c.receive(`{"max": 1000}`) {
			if d["attempt"] != 1.0 || d["deliveries"] != 1.0 {
				t.Errorf("it counted: %v", d)
			}
		}
		_ = conn.Close()
		_ = s.Close()
		<-served
	})
}

// A name says nothing when a push subscription is made: it is looked up for each post, and no private address is
// called.
func TestPushToANameOfAPrivateAddress(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		t.Error("the endpoint was called")
	}))
	defer s.Close()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	g, _ := newGateway(t, gateway.Options{})
	c := client{t, g, token(nil)}
	runtest.Start(t, g.Run)
	if status, p := c.do(http.MethodPut, "/v1/push/hook", `{"topic": "jobs", "url": "http://localhost:`+at.Port()+
		`/"}`); status != http.StatusOK {
		t.Fatalf("%d %v", status, p)
	}
	c.ok("/v1/topics/jobs/messages", "x")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, p := c.do(http.MethodGet, "/v1/push/hook", "")
		if health, _ := p["health"].(map[string]any); health["state"] == "failing" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing was refused: %v", p)
		}
	}
}
