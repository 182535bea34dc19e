package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/monitor"
)

func TestBrokerAndHealth(t *testing.T) {
	virtual(t, Options{Environment: "production"}, func(r *rig) {
		var b api.Broker
		r.get(api.Base+"/broker", &b)
		if b.Driver != "memory" || b.Environment != "production" || b.Log || !b.Guards || !b.Actions ||
			b.Capabilities.MaxBody == 0 {
			t.Errorf("broker: %+v", b)
		}
		r.publish(3)
		var h api.Health
		r.get(api.Base+"/health", &h)
		if h.Status != "degraded" || h.QueueSize != 3 || len(h.Errors) == 0 || len(h.Errors) != len(h.Reasons) {
			t.Errorf("health: %+v", h)
		}
		why := h.Reasons[0]
		if why.Code != string(monitor.CodeNoConsumer) || why.Topic == "" || why.Group != "default" || why.Count != 3 {
			t.Errorf("the reason: %+v", why)
		}
		var f api.Findings
		r.get(api.Base+"/doctor", &f)
		if len(f.Findings) == 0 {
			t.Error("the doctor found nothing to say")
		}
	})
}

func TestLimitsAndBreakers(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		key := api.Base + "/limits/messages/keys/ann"
		rule := api.Rule{Limit: 5, Window: jsontime.Duration(time.Minute), Penalty: &api.Penalty{After: 3}}
		r.ask(http.StatusNoContent, "PUT", key+"/override", api.OverrideKey{Rule: rule, For: jsontime.Duration(time.Hour),
			Reason: "vip"}, nil)
		var k api.LimitKey
		r.get(key, &k)
		if k.Override == nil || k.Override.Rule.Limit != 5 || k.Reason != "vip" || k.Actor != "user ann" {
			t.Errorf("overridden: %+v", k)
		}
		r.refused(http.StatusBadRequest, "PUT", key+"/override", api.OverrideKey{For: jsontime.Duration(time.Hour)})
		r.ask(http.StatusNoContent, "PUT", key+"/block", api.BlockKey{For: jsontime.Duration(time.Hour), Reason: "spam"}, nil)
		var v api.LimitVerdict
		r.get(key+"/check", &v)
		if v.Passes || !v.Blocked {
			t.Errorf("would pass: %+v", v)
		}
		r.ask(http.StatusNoContent, "DELETE", key+"/block?reason=sorry", nil, nil)
		r.ask(http.StatusNoContent, "DELETE", key+"/override", nil, nil)
		r.ask(http.StatusNoContent, "PUT", api.Base+"/breakers/billing", api.ForceBreaker{State: "open", Reason: "deploy"},
			nil)
		var b api.Breakers
		r.get(api.Base+"/breakers", &b)
		if len(b.Breakers) != 1 || b.Breakers[0].State != "open" || !b.Breakers[0].Forced {
			t.Errorf("breakers: %+v", b)
		}
		var c api.LimitChanges
		r.get(api.Base+"/limits/changes", &c)
		if len(c.Changes) != 5 || c.Changes[0].Action != "breaker_open" {
			t.Errorf("%d changes: %+v", len(c.Changes), c.Changes)
		}
	})
}

// TestRulesOfLimits: a rule that is set over HTTP holds for the next message of a process that shares the store.
func TestRulesOfLimits(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		limiter, err := guard.NewLimiter(r.api.o.Guards,
			guard.LimiterOptions{Limits: []guard.Limit{{Name: "user", Rule: guard.Rule{Limit: 1, Window: time.Hour}}}})
		if err != nil {
			t.Fatal(err)
		}
		passed := func() int {
			n := 0
			for limiter.Allow(r.Context(), &ferry.Message{Key: "ann"}) == nil {
				n++
			}
			return n
		}
		if n := passed(); n != 1 {
			t.Errorf("%d passed by the rule of the program, want 1", n)
		}
		path := api.Base + "/limits/user/rule"
		set := api.SetRule{Rule: api.Rule{Limit: 3, Window: jsontime.Duration(time.Hour)}, Reason: "launch"}
		r.ask(http.StatusNoContent, "PUT", path, set, nil)
		if n := passed(); n != 2 {
			t.Errorf("%d more passed by the rule that was set, want 2", n)
		}
		r.ask(http.StatusNoContent, "PUT", path+"?group=vip", api.SetRule{Rule: api.Rule{Unlimited: true}}, nil)
		var rules api.LimitRules
		r.get(api.Base+"/limits/rules", &rules)
		if len(rules.Rules) != 2 || rules.Rules[0].Rule.Limit != 3 || rules.Rules[0].Reason != "launch" ||
			rules.Rules[0].Actor != "user ann" || rules.Rules[1].Group != "vip" {
			t.Errorf("rules: %+v", rules)
		}
		r.ask(http.StatusNoContent, "DELETE", path+"?reason=over", nil, nil)
		if r.get(api.Base+"/limits/rules", &rules); len(rules.Rules) != 1 {
			t.Errorf("cleared: %+v", rules)
		}
		r.refused(http.StatusBadRequest, "PUT", path, api.SetRule{Rule: api.Rule{Limit: 3}})
	})
}

func TestSchedules(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		body := "{}"
		path := api.Base + "/schedules/daily%20report"
		put := api.PutSchedule{Spec: "0 3 * * *", Zone: "Europe/Berlin", Topic: topic, Message: api.NewMessage{Body: &body}}
		var s api.Schedule
		r.ask(http.StatusOK, "PUT", path, put, &s)
		if s.Name != "daily report" || s.State != "active" || s.Next == nil || *s.Message.Body != body {
			t.Errorf("put: %+v", s)
		}
		bad := put
		bad.Spec = "whenever"
		r.refused(http.StatusBadRequest, "PUT", path, bad)
		mailer := r.as(auth.Grant{Role: auth.Operator, Topics: []string{"mails"}})
		stolen := put
		stolen.Topic = "mails"
		mailer.refused(http.StatusForbidden, "PUT", path, stolen)
		mailer.refused(http.StatusForbidden, "DELETE", path, nil)
		var page api.SchedulePage
		if mailer.get(api.Base+"/schedules", &page); len(page.Schedules) != 0 {
			t.Errorf("a mailer sees %+v", page.Schedules)
		}
		var p api.Published
		r.ask(http.StatusOK, "POST", path+"/trigger", nil, &p)
		if p.ID == "" || p.Topic != topic {
			t.Errorf("triggered %+v", p)
		}
		r.ask(http.StatusNoContent, "POST", path+"/pause", nil, nil)
		if r.get(path, &s); s.State != "paused" {
			t.Errorf("paused: %+v", s)
		}
		r.ask(http.StatusNoContent, "POST", path+"/resume", nil, nil)
		r.ask(http.StatusNoContent, "DELETE", path, nil, nil)
		r.refused(http.StatusNotFound, "GET", path, nil)
		var ticks api.Ticks
		if r.get(api.Base+"/ticks?spec=%40hourly&count=3", &ticks); len(ticks.Ticks) != 3 {
			t.Errorf("ticks: %+v", ticks)
		}
	})
}

func TestMembersAndScale(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		m, err := cluster.Join(r.broker, cluster.Options{Name: "web"})
		if err != nil {
			t.Fatal(err)
		}
		stop := runtest.Start(r, m.Run)
		time.Sleep(time.Second)
		var all api.Members
		if r.get(api.Base+"/members", &all); len(all.Members) != 1 || all.Members[0].Name != "web" {
			t.Errorf("members: %+v", all)
		}
		r.get(api.Base+"/members/web", nil)
		r.refused(http.StatusNotFound, "POST", api.Base+"/members/nobody/commands", api.Command{Do: "quiet"})
		stop()
		r.publish(2000)
		time.Sleep(2 * time.Minute)
		var s api.Scale
		r.as(auth.Grant{Role: auth.Viewer, Topics: []string{topic}}).get(api.Base+"/scale/"+topic+"/default?max=4", &s)
		if s.Verdict != "scale_out" || s.Value < 1 || s.Value > 4 || s.Depth != 2000 {
			t.Errorf("scale: %+v", s)
		}
		r.refused(http.StatusBadRequest, "GET", api.Base+"/scale/"+topic+"/default?min=4&max=2", nil)
	})
}

// TestTokensGiveNothingAway: who lacks a scope cannot make a token that has it.
func TestTokensGiveNothingAway(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		var made api.CreatedToken
		r.ask(http.StatusOK, "POST", api.Base+"/tokens", api.CreateToken{Name: "keda", Scopes: []string{"metrics"},
			Topics: []string{"ord*"}}, &made)
		who, err := auth.NewTokens(r.broker).Check(r.Context(), auth.NewSecret(made.Text))
		if err != nil || !who.May(auth.Metrics, topic) || who.May(auth.View, topic) {
			t.Errorf("the token is good for %v, %v", who, err)
		}
		bound := *r
		bound.who = &auth.Identity{Kind: auth.KindToken, Grants: boss.Grants, Scopes: []auth.Scope{auth.Admin}}
		bound.refused(http.StatusForbidden, "POST", api.Base+"/tokens",
			api.CreateToken{Name: "more", Scopes: []string{"operate"}})
		r.refused(http.StatusBadRequest, "POST", api.Base+"/tokens",
			api.CreateToken{Name: "odd", Scopes: []string{"everything"}})
		var p api.TokenPage
		if r.get(api.Base+"/tokens", &p); len(p.Tokens) != 1 || p.Tokens[0].ID != made.ID {
			t.Errorf("tokens: %+v", p)
		}
		r.ask(http.StatusNoContent, "DELETE", api.Base+"/tokens/"+made.ID, nil, nil)
		if _, err := auth.NewTokens(r.broker).Check(r.Context(), auth.NewSecret(made.Text)); err == nil {
			t.Error("a token that was revoked is good")
		}
	})
}

// TestSeries: ten seconds apart by itself, and each second once somebody has looked.
func TestSeries(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		defer r.run()()
		time.Sleep(65 * time.Second)
		r.publish(30)
		path := api.Base + "/topics/" + topic + "/series?group=default"
		var s api.Series
		r.get(path, &s)
		if n := len(s.Lines); n < 6 || n > 8 {
			t.Errorf("%d points in 65 seconds that nobody watched", n)
		}
		time.Sleep(20 * time.Second)
		r.get(path, &s)
		if n := len(s.Lines); n < 24 || s.Lines[n-1].Ready != 30 {
			t.Errorf("%d points, the last %+v", n, s.Lines[n-1])
		}
		r.get(path+"&span=24h", &s)
		if n := len(s.Lines); n != 2 || s.Every != "1m" {
			t.Errorf("%d minutes", n)
		}
		var f api.Figures
		r.as(auth.Grant{Role: auth.Viewer, Topics: []string{"mails"}}).get(api.Base+"/figures", &f)
		if len(f.Queues) != 0 {
			t.Errorf("whoever sees mails sees %+v", f.Queues)
		}
	})
}

// TestTotals: the topics that somebody may see are added up, and what is watched closely does not count more.
func TestTotals(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		defer r.run()()
		for _, group := range []string{"default", "other"} {
			r.ask(http.StatusOK, "PUT", api.Base+"/topics/"+topic+"/groups/"+group, map[string]any{}, nil)
		}
		r.publish(30)
		var s api.Series
		for range 90 { // a minute is told as it began: the second one has them all
			time.Sleep(time.Second)
			r.get(api.Base+"/topics/"+topic+"/series", &s) // it is watched
		}
		for _, span := range []string{"5m", "24h"} {
			r.get(api.Base+"/series?span="+span, &s)
			n := len(s.Lines)
			if n == 0 || s.Lines[n-1].Ready != 60 {
				t.Errorf("%s: %+v", span, s)
			}
		}
		r.as(auth.Grant{Role: auth.Viewer, Topics: []string{"mails"}}).get(api.Base+"/series", &s)
		if len(s.Lines) != 0 {
			t.Errorf("whoever sees mails sees %+v", s.Lines)
		}
	})
}

// TestRing: it keeps the newest points, and tells them oldest first.
func TestRing(t *testing.T) {
	t.Parallel()
	var r ring
	for i := range 10 {
		r.add(point{at: int64(i)}, 4)
	}
	if got := r.since(time.UnixMilli(7)); len(got) != 2 || got[0].at != 8 || got[1].at != 9 {
		t.Errorf("after 7: %v", got)
	}
	if got := r.since(time.UnixMilli(-1)); len(got) != 4 || got[0].at != 6 {
		t.Errorf("all: %v", got)
	}
	if got := r.since(time.UnixMilli(9)); got != nil {
		t.Errorf("after the last: %v", got)
	}
}

// TestStreams: figures come as they change, an operation until it has ended, and there is room for so many.
func TestStreams(t *testing.T) {
	virtual(t, Options{MaxStreams: 1}, func(r *rig) {
		defer r.run()()
		w := r.do("GET", api.Base+"/figures/events?topic="+topic, "", nil)
		if got := events(w.Body.String()); w.Header().Get("Content-Type") != eventStream || len(got) < 25 ||
			!strings.HasPrefix(got[0], "event: figures\ndata: {") {
			t.Errorf("%d events in a minute, the first %q", len(got), got[0])
		}
		var op api.Operation
		r.ask(http.StatusOK, "POST", api.Base+"/topics/"+topic+"/purge", api.Purge{}, &op)
		w = r.do("GET", api.Base+"/operations/"+op.ID+"/events", "", nil)
		got := events(w.Body.String())
		if last := got[len(got)-1]; !strings.Contains(last, `"state":"done"`) {
			t.Errorf("the last of %d events: %s", len(got), last)
		}
		submitted := make(chan string, 1)
		later := time.AfterFunc(10*time.Second, func() {
			var op api.Operation
			r.ask(http.StatusOK, "POST", api.Base+"/topics/"+topic+"/purge", api.Purge{}, &op)
			submitted <- op.ID
		})
		defer later.Stop()
		got = events(r.do("GET", api.Base+"/operations/events", "", nil).Body.String()) // for a minute
		id, all := <-submitted, strings.Join(got, "\n")
		if ended := regexp.MustCompile(`"operation":"`+id+`".*"state":"done"`).FindAllString(all, -1); len(ended) != 1 ||
			!strings.Contains(all, ": alive") {
			t.Errorf("events of all operations, of which %s was submitted meanwhile: %s", id, all)
		}
		mailer := r.as(auth.Grant{Role: auth.Operator, Topics: []string{"mails"}})
		r.ask(http.StatusOK, "POST", api.Base+"/topics/"+topic+"/purge", api.Purge{}, nil)
		if all := mailer.do("GET", api.Base+"/operations/events", "", nil).Body.String(); strings.Contains(all, "event:") {
			t.Errorf("whoever sees mails sees %s", all)
		}
		r.api.streams <- struct{}{}
		if p := r.refused(http.StatusTooManyRequests, "GET", api.Base+"/figures/events", nil); p.Code != api.CodeFull {
			t.Errorf("no room: %+v", p)
		}
		<-r.api.streams
	})
}

// failing is a broker whose answers to everything are errors that name what nobody may see.
type failing struct {
	driver.Driver
	err error
}

func (f failing) Topics(context.Context, ...string) ([]driver.TopicInfo, error) { return nil, f.err }
func (f failing) Stats(context.Context, string) (driver.TopicStats, error) {
	if f.err == nil {
		panic("canary")
	}
	return driver.TopicStats{}, f.err
}

// TestFailuresTellNothing: whatever a backend says, or panics with, the client learns neither addresses nor secrets.
func TestFailuresTellNothing(t *testing.T) {
	t.Parallel()
	canary := "redis://:canary@10.0.0.1:6379"
	for _, test := range []struct {
		err    error
		status int
	}{
		{driver.NewError(driver.ErrNotApplied, "dial "+canary, "try "+canary, nil), http.StatusServiceUnavailable},
		{driver.NewError(driver.ErrUnknown, canary, canary, nil), http.StatusGatewayTimeout},
		{context.DeadlineExceeded, http.StatusServiceUnavailable},
		{json.Unmarshal([]byte("canary"), new(int)), http.StatusInternalServerError},
		{nil, http.StatusInternalServerError},
	} {
		inner, err := memory.New(t.Context(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := ferry.New(failing{inner, test.err}, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(Options{Broker: b})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(auth.With(t.Context(), boss), "GET", api.Base+"/topics/"+topic, nil))
		if body := w.Body.String(); w.Code != test.status || strings.Contains(body, "canary") ||
			strings.Contains(body, "goroutine") || !strings.Contains(body, `"request_id"`) {
			t.Errorf("%v: %d %s", test.err, w.Code, body)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestStreamOverHTTP: events are flushed one by one, and a server that stops ends the stream.
func TestStreamOverHTTP(t *testing.T) {
	t.Parallel()
	b, err := memory.Open(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	a, err := New(Options{Broker: b})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.ServeHTTP(w, r.WithContext(auth.With(r.Context(), boss)))
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, "GET", s.URL+api.Base+"/figures/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || line != "event: figures\n" {
		t.Errorf("the first line is %q, %v", line, err)
	}
	cancel()
	http.DefaultClient.CloseIdleConnections()
}
