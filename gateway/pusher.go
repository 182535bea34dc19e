package gateway

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/safehttp"
	"github.com/ferrymq/ferry/worker"
)

// pushDuty is what one of all gateways on a broker does at a time.
const pushDuty = "push"

// Run posts what push subscriptions ask for, until ctx ends. Of all gateways on a broker one does at a time; another
// goes on when that one is gone. A gateway that does not run answers requests all the same.
func (g *Gateway) Run(ctx context.Context) error {
	return cluster.Lead(ctx, g.broker, pushDuty, func(ctx context.Context, _ *cluster.Lock) error {
		p := &pusher{g: g, running: map[string]*posting{}}
		defer p.stop()
		return p.follow(ctx)
	})
}

// pusher runs a worker for each push subscription.
type pusher struct {
	g       *Gateway
	running map[string]*posting
}

// posting is the worker of one subscription, as of one revision.
type posting struct {
	revision uint64
	cancel   context.CancelFunc
	done     chan struct{}
}

// pushRetry is how long a broker that is away is left alone.
const pushRetry = time.Second

// follow runs what there is, as it changes.
func (p *pusher) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		all, revision, err := p.g.pushes(ctx)
		if err == nil {
			p.adapt(ctx, all)
			_, _, err = p.g.driver.KV().Changes(ctx, driver.PushBucket, revision)
		}
		if err != nil && !errors.Is(err, driver.ErrNotFound) {
			select {
			case <-time.After(pushRetry):
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err()
}

// adapt ends what is gone, paused or different, and begins what is new. It waits for none of them: an endpoint that is
// slow to end does not hold up the others.
func (p *pusher) adapt(ctx context.Context, all map[string]stored) {
	for name, r := range p.running {
		if s, there := all[name]; !there || s.Paused || s.revision != r.revision {
			r.cancel()
			r.revision = ending
		}
		if r.revision == ending && r.ended() {
			delete(p.running, name)
		}
	}
	for name, s := range all {
		if before := p.running[name]; !s.Paused && (before == nil || before.revision == ending) {
			p.running[name] = p.g.post(ctx, name, s, before)
		}
	}
}

func (p *pusher) stop() {
	for _, r := range p.running {
		r.cancel()
	}
	for _, r := range p.running {
		<-r.done
	}
}

// ending is the revision of a posting that was cancelled. No subscription has it.
const ending = 0

func (r *posting) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// post runs the worker of a subscription: it brings retries, order by key, leases and dead letters. It begins when the
// one before it, if there is one, has ended.
func (g *Gateway) post(ctx context.Context, name string, s stored, before *posting) *posting {
	ctx, cancel := context.WithCancel(ctx)
	r := &posting{revision: s.revision, cancel: cancel, done: make(chan struct{})}
	m := &meter{g: g, name: name}
	go func() {
		defer close(r.done)
		if before != nil {
			<-before.done
		}
		for ctx.Err() == nil {
			w := worker.New(g.broker, worker.Options{Instance: "push-" + name + "@" + g.leases.node, Logger: g.o.Logger})
			worker.HandleRaw(w, s.Topic, func(ctx context.Context, d *ferry.Delivery) error {
				err := g.deliver(ctx, s.pushed, d)
				m.note(ctx, err)
				return err
			},
				worker.Group(s.Group), worker.Concurrency(s.Concurrency), worker.Timeout(time.Duration(s.Timeout)))
			err := w.Run(ctx)
			if err == nil || ctx.Err() != nil {
				continue
			}
			g.o.Logger.WarnContext(ctx, "ferry: a push subscription stopped, and begins again", "name", name, "error", err)
			select {
			case <-time.After(pushRetry):
			case <-ctx.Done():
			}
		}
	}()
	return r
}

// deliver posts a message, and turns the answer into its outcome.
func (g *Gateway) deliver(ctx context.Context, p pushed, d *ferry.Delivery) error {
	req, err := signed(ctx, p, d, time.Now())
	if err != nil {
		return worker.Fatal(err)
	}
	a, err := g.poster.Status(req)
	switch {
	case err != nil:
		return err
	case a.Status >= 200 && a.Status < 300:
		return nil
	case a.Status == http.StatusGone:
		return worker.Fatal(fmt.Errorf("the endpoint answered with status %d", a.Status))
	}
	err = fmt.Errorf("the endpoint answered with status %d", a.Status)
	if wait := putOff(a.Header); wait > 0 {
		return worker.RetryAfter(err, wait)
	}
	return err
}

// mostRetryAfter is the longest that an endpoint may put off a message.
const mostRetryAfter = time.Hour

// putOff is for how long an endpoint puts a message off: Retry-After in seconds. Zero if it does not say so.
func putOff(h http.Header) time.Duration {
	seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int64(mostRetryAfter/time.Second))) * time.Second
}

// signed is the request for a message: its body is the body, signed as Standard Webhooks says. Its id stays the same
// over retries.
func signed(ctx context.Context, p pushed, d *ferry.Delivery, now time.Time) (*http.Request, error) {
	key, err := p.key()
	if err != nil {
		return nil, err
	}
	body, contentType, attributes, err := p.content(ctx, d.Message)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(d.ID + "." + at + "."))
	_, _ = mac.Write(body)
	h := req.Header
	h.Set("Webhook-Id", d.ID)
	h.Set("Webhook-Timestamp", at)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	h.Set("Content-Type", contentType)
	h.Set("Ferry-Topic", d.Topic)
	h.Set("Ferry-Group", d.Group)
	h.Set("Ferry-Attempt", strconv.Itoa(d.Attempt))
	if d.Key != "" {
		h.Set("Ferry-Key", headerText(d.Key))
	}
	for name, value := range attributes {
		h.Set(name, headerText(value))
	}
	return req, nil
}

// headerText is a text as a header may have it: what is not printable ASCII is percent-encoded, as CloudEvents asks
// for.
func headerText(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// newPoster returns the client for URLs that users gave.
func newPoster(o Options) *safehttp.Client {
	return safehttp.New(safehttp.Options{Timeout: mostPushTimeout, AllowPrivate: o.AllowPrivate})
}
