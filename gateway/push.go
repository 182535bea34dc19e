package gateway

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// pushed is a subscription that posts messages to a URL, as it is stored and shown.
type pushed struct {
	Topic string `json:"topic"`
	Group string `json:"group" required:"false"`
	URL   string `json:"url"`
	// Secret signs what is posted. It is told when it is set, and never again.
	Secret string `json:"secret,omitempty"`
	// Concurrency is how many posts run at once. Messages of one key are posted one after the other.
	Concurrency int `json:"concurrency" required:"false"`
	// Timeout is how long one post may take.
	Timeout jsontime.Duration `json:"timeout" required:"false"`
	Paused  bool              `json:"paused" required:"false"`
	// Events makes each post a CloudEvent. Empty: events stay what they are, and other messages are posted as they are.
	Events string `json:"events,omitempty" enum:"binary,structured"`
	// Health is how the endpoint has answered lately. It is shown, and nobody sets it.
	Health *health `json:"health,omitempty" readOnly:"true"`
}

// pushList are the subscriptions by name.
type pushList struct {
	Push map[string]pushed `json:"push"`
}

// Bounds and defaults of a push subscription.
const (
	pushConcurrency     = 10
	mostPushConcurrency = 100
	pushTimeout         = 10 * time.Second
	mostPushTimeout     = time.Minute

	secretPrefix = "whsec_"
	secretSize   = 24 // bytes at least, as Standard Webhooks says
)

// resolved fills in defaults, and says what is wrong.
func (p pushed) resolved(check func(url string) error) (pushed, error) {
	if p.Group == "" {
		p.Group = driver.DefaultGroup
	}
	if p.Concurrency == 0 {
		p.Concurrency = pushConcurrency
	}
	if p.Timeout == 0 {
		p.Timeout = jsontime.Duration(pushTimeout)
	}
	if p.Secret == "" {
		p.Secret = secretPrefix + base64.StdEncoding.EncodeToString([]byte(rand.Text()+rand.Text()[:6]))
	}
	if err := errors.Join(driver.CheckTopic(p.Topic), driver.CheckName("group", p.Group), check(p.URL)); err != nil {
		return p, err
	}
	switch _, err := p.key(); {
	case err != nil:
		return p, err
	case p.Events != "" && p.Events != binaryEvents && p.Events != structuredEvents:
		return p, invalid(fmt.Sprintf("events are %.40q", p.Events), "use binary or structured, or leave it out", nil)
	case p.Concurrency < 1 || p.Concurrency > mostPushConcurrency:
		return p, invalid(fmt.Sprintf("the concurrency is %d", p.Concurrency),
			fmt.Sprintf("use 1 to %d", mostPushConcurrency), nil)
	case p.Timeout < jsontime.Duration(time.Second) || p.Timeout > jsontime.Duration(mostPushTimeout):
		return p, invalid(fmt.Sprintf("the timeout is %v", p.Timeout), fmt.Sprintf("use 1s to %v", mostPushTimeout), nil)
	}
	return p, nil
}

// key is what signs.
func (p pushed) key() ([]byte, error) {
	text, found := strings.CutPrefix(p.Secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil || len(key) < secretSize {
		return nil, invalid("the secret is not one of Standard Webhooks",
			fmt.Sprintf("write whsec_ and at least %d bytes in base64, or leave it out", secretSize), nil)
	}
	return key, nil
}

// hidden is the subscription as it is shown to who reads it: without its secret, and without the query of its URL,
// which may hold one.
func (p pushed) hidden() pushed {
	p.Secret = ""
	if before, _, found := strings.Cut(p.URL, "?"); found {
		p.URL = before + "?" + hiddenQuery
	}
	return p
}

// hiddenQuery stands where a query is not shown.
const hiddenQuery = "***"

// readPush returns a subscription and its revision; ErrNotFound if there is none.
func (g *Gateway) readPush(ctx context.Context, name string) (pushed, uint64, error) {
	var p pushed
	if err := driver.CheckName("push subscription", name); err != nil {
		return p, 0, err
	}
	vs, err := g.driver.KV().Get(ctx, driver.PushBucket, name)
	switch {
	case err != nil:
		return p, 0, err
	case vs[0].Revision == 0:
		return p, 0, driver.NewError(driver.ErrNotFound, fmt.Sprintf("there is no push subscription %.80q", name),
			"list them: GET /v1/push", nil)
	}
	return p, vs[0].Revision, json.Unmarshal(vs[0].Data, &p)
}

// mayPush is for who sets up or ends posts of a topic: they consume it, and send it elsewhere. Who must not is
// recorded.
func (g *Gateway) mayPush(ctx context.Context, what string, p pushed) error {
	err := errors.Join(may(ctx, auth.Consume, p.Topic), may(ctx, auth.Operate, p.Topic))
	if err != nil {
		g.record(ctx, auth.Action{What: what, Topic: p.Topic, Group: p.Group}, err)
	}
	return err
}

// What is recorded of push subscriptions.
const (
	putPush    = "push.put"
	deletePush = "push.delete"
)

// servePutPush makes or replaces a subscription. Without a secret it keeps the one it has, or gets one; a URL as it is
// shown keeps its query.
func (g *Gateway) servePutPush(w http.ResponseWriter, r *http.Request) {
	var p pushed
	body, err := g.body(r)
	if err == nil {
		err = strict(body, &p, "the body")
	}
	if err == nil {
		err = g.mayPush(r.Context(), putPush, p)
	}
	if err == nil && p.Health != nil {
		err = invalid("the health of an endpoint cannot be set", "leave it out", nil)
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	old, revision, err := g.readPush(r.Context(), r.PathValue("name"))
	condition := driver.Condition(revision)
	switch {
	case errors.Is(err, driver.ErrNotFound):
		err, condition = nil, driver.Absent
	case err == nil:
		err = g.mayPush(r.Context(), putPush, old)
	}
	given := p.Secret
	if given == "" {
		p.Secret = old.Secret
	}
	kept := p.Secret != "" && given == ""
	if p.URL == old.hidden().URL { // as it was shown
		p.URL = old.URL
	}
	if err == nil {
		p, err = p.resolved(g.checkURL)
	}
	if err == nil {
		err = g.writePush(r.Context(), r.PathValue("name"), p, condition)
		g.record(r.Context(), auth.Action{What: putPush, Topic: p.Topic, Group: p.Group, Detail: r.PathValue("name")}, err)
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	if kept {
		p = p.hidden()
	}
	answer(w, http.StatusOK, p)
}

func (g *Gateway) checkURL(url string) error {
	_, err := g.poster.Check(url)
	return err
}

func (g *Gateway) writePush(ctx context.Context, name string, p pushed, condition driver.Condition) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return g.driver.KV().Apply(ctx, driver.PushBucket, driver.KVOptions{},
		driver.Write{Name: name, Data: data, If: condition})[0].Err
}

// serveGetPush shows a subscription without its secret.
func (g *Gateway) serveGetPush(w http.ResponseWriter, r *http.Request) {
	p, _, err := g.readPush(r.Context(), r.PathValue("name"))
	if err == nil {
		err = may(r.Context(), auth.View, p.Topic)
	}
	if err == nil {
		var all map[string]*health
		all, err = g.readHealth(r.Context(), r.PathValue("name"))
		p.Health = all[r.PathValue("name")]
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	answer(w, http.StatusOK, p.hidden())
}

// serveDeletePush ends a subscription. Its group stays, with what is not settled.
func (g *Gateway) serveDeletePush(w http.ResponseWriter, r *http.Request) {
	p, _, err := g.readPush(r.Context(), r.PathValue("name"))
	if err == nil {
		err = g.mayPush(r.Context(), deletePush, p)
	}
	if err == nil {
		err = g.driver.KV().Apply(r.Context(), driver.PushBucket, driver.KVOptions{},
			driver.Write{Name: r.PathValue("name"), Delete: true})[0].Err
	}
	if err == nil {
		g.record(r.Context(), auth.Action{What: deletePush, Topic: p.Topic, Group: p.Group, Detail: r.PathValue("name")}, nil)
		err = g.driver.KV().Apply(r.Context(), healthBucket, driver.KVOptions{},
			driver.Write{Name: r.PathValue("name"), Delete: true})[0].Err
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	answer(w, http.StatusOK, p.hidden())
}

// serveListPush shows the subscriptions that who asks may see, by name.
func (g *Gateway) serveListPush(w http.ResponseWriter, r *http.Request) {
	all, _, err := g.pushes(r.Context())
	if err == nil && !auth.From(r.Context()).MayAny(auth.View) {
		err = may(r.Context(), auth.View, "")
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	maps.DeleteFunc(all, func(_ string, p stored) bool { return may(r.Context(), auth.View, p.Topic) != nil })
	health, err := g.readHealth(r.Context(), slices.Collect(maps.Keys(all))...)
	if err != nil {
		refuse(w, r, err)
		return
	}
	out := map[string]pushed{}
	for name, p := range all {
		p.Health = health[name]
		out[name] = p.hidden()
	}
	answer(w, http.StatusOK, pushList{out})
}

// stored is a subscription with its revision.
type stored struct {
	pushed
	revision uint64
}

// pushes returns all subscriptions by name, and the revision from which on to look for changes.
func (g *Gateway) pushes(ctx context.Context) (map[string]stored, uint64, error) {
	all, revision, first := map[string]stored{}, uint64(0), true
	for q := (driver.KVQuery{Bucket: driver.PushBucket, Limit: driver.MaxLimit}); ; {
		page, err := g.driver.KV().List(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		if first {
			revision, first = page.Revision, false
		}
		for _, v := range page.Values {
			s := stored{revision: v.Revision}
			if err := json.Unmarshal(v.Data, &s.pushed); err != nil {
				g.o.Logger.WarnContext(ctx, "ferry: a push subscription cannot be read", "name", v.Name, "error", err)
				continue
			}
			all[v.Name] = s
		}
		if q.After = page.Next; q.After == "" {
			return all, revision, nil
		}
	}
}
