package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/internal/letterjson"
)

func messagesPath(query string) string {
	return api.Base + "/topics/" + topic + "/messages?" + query
}

// TestMessagesArePaged: pages hold each message once, whatever their size, and the cursor of another listing is
// refused.
func TestMessagesArePaged(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		r.publish(7)
		r.publish(3, ferry.Delay(time.Hour))
		for _, where := range []string{"", "size > 0"} {
			seen, pages := map[string]bool{}, 0
			for cursor := ""; ; pages++ {
				var p api.MessagePage
				r.get(messagesPath("limit=4&where="+url.QueryEscape(where)+"&cursor="+url.QueryEscape(cursor)), &p)
				for _, m := range p.Messages {
					if seen[m.ID] {
						t.Errorf("%s is there twice", m.ID)
					}
					seen[m.ID] = true
				}
				if cursor = p.Next; cursor == "" {
					if p.Scanned != 10 || p.Total != 10 {
						t.Errorf("scanned %d of %d, want 10 of 10", p.Scanned, p.Total)
					}
					break
				}
			}
			if len(seen) != 10 || pages < 2 {
				t.Errorf("%d messages on %d pages", len(seen), pages)
			}
		}
		var p api.MessagePage
		r.get(messagesPath("state=ready&limit=2"), &p)
		r.refused(http.StatusBadRequest, "GET", messagesPath("state=delayed&cursor="+p.Next), nil)
		r.refused(http.StatusBadRequest, "GET", messagesPath("cursor=rubbish"), nil)
		r.refused(http.StatusNotFound, "GET", messagesPath("group=nobody"), nil)
		r.refused(http.StatusBadRequest, "GET", messagesPath("where=nothing+is"), nil)
	})
}

func TestMessagesBySearch(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		r.publish(5)
		r.publish(2, ferry.Key("k"))
		var p api.MessagePage
		r.get(messagesPath("key=k"), &p)
		if len(p.Messages) != 2 {
			t.Errorf("by key: %d", len(p.Messages))
		}
		r.get(messagesPath("where="+url.QueryEscape("json.n == 3")), &p)
		if len(p.Messages) != 1 || p.Scanned != 7 {
			t.Errorf("by filter: %d of %d", len(p.Messages), p.Scanned)
		}
		var v api.Views
		r.get(api.Base+"/topics/"+topic+"/messages/"+p.Messages[0].ID, &v)
		if len(v.Messages) != 1 || v.Messages[0].State != "ready" || *v.Messages[0].Body != `{"n":3,"card":"4111"}` {
			t.Errorf("by id: %+v", v.Messages)
		}
		r.refused(http.StatusNotFound, "GET", api.Base+"/topics/"+topic+"/messages/none", nil)
	})
}

// TestPayloadTakesItsScope: without it neither bodies nor filters on them.
func TestPayloadTakesItsScope(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		r.publish(1)
		viewer := r.as(auth.Grant{Role: auth.Viewer})
		var p api.MessagePage
		viewer.get(messagesPath(""), &p)
		if len(p.Messages) != 1 || p.Messages[0].Body != nil || !p.Messages[0].Hidden {
			t.Errorf("a viewer sees %+v", p.Messages)
		}
		for _, where := range []string{`json.n == 0`, `body contains "4111"`, `len(body) > 3 or size > 0`} {
			viewer.refused(http.StatusForbidden, "GET", messagesPath("where="+url.QueryEscape(where)), nil)
			viewer.refused(http.StatusForbidden, "GET", api.Base+"/dead?topic="+topic+"&where="+url.QueryEscape(where), nil)
		}
		viewer.get(messagesPath("where="+url.QueryEscape(`size > 0`)), &p)
	})
}

// TestMasks: what is masked is shown to nobody, in no body, header or filter, and in no export.
func TestMasks(t *testing.T) {
	o := Options{Masks: []Mask{{Topics: []string{"ord*"}, Fields: []string{"Card"}, Headers: []string{"Authorization"}}}}
	virtual(t, o, func(r *rig) {
		var told api.MaskList
		r.get(api.Base+"/masks", &told)
		want := api.MaskList{Masks: []api.Mask{{Topics: []string{"ord*"}, Fields: []string{"card"},
			Headers: []string{"authorization"}}}}
		if !reflect.DeepEqual(told, want) {
			t.Errorf("%+v", told)
		}
		r.publish(1, ferry.Header("authorization", "canary-1"))
		if _, err := r.broker.Publish(r.Context(), &ferry.Message{Topic: topic, Body: []byte("card canary-2")}); err != nil {
			t.Fatal(err)
		}
		w := r.do("GET", messagesPath(""), "", nil)
		if got := w.Body.String(); strings.Contains(got, "canary") || strings.Contains(got, "4111") ||
			!strings.Contains(got, `{\"card\":\"***\",\"n\":0}`) {
			t.Errorf("shown: %s", got)
		}
		r.refused(http.StatusForbidden, "GET", messagesPath("where="+url.QueryEscape(`json.card == "4111"`)), nil)
		r.refused(http.StatusForbidden, "GET",
			messagesPath("where="+url.QueryEscape(`headers["authorization"] startsWith "c"`)), nil)
		r.refused(http.StatusForbidden, "GET", api.Base+"/dead/export?topic="+topic, nil)
	})
}

// TestMaskedLettersStayMasked: a replay does not show what is masked: not by the tests and copies of a patch, and not
// in a topic that hides less.
func TestMaskedLettersStayMasked(t *testing.T) {
	o := Options{Masks: []Mask{{Topics: []string{"ord*"}, Fields: []string{"Card"}},
		{Topics: []string{"ord*", "mails"}, Headers: []string{"Authorization"}}}}
	virtual(t, o, func(r *rig) {
		id := r.kill(1, "timeout")[0]
		patch := []api.PatchStep{{Op: "copy", From: "/card", Path: "/seen"}}
		for _, one := range []api.ReplayOne{{Edit: &api.Edit{Patch: patch}}, {To: "mails"}, {To: "open"}} {
			r.refused(http.StatusForbidden, "POST", letterPath(id)+"/replay", one)
		}
		for _, many := range []api.ReplayMany{{Patch: patch}, {To: "mails"}, {To: "open"}} {
			r.refused(http.StatusForbidden, "POST", api.Base+"/dead/replay", many) // of every topic
			many.Topic = topic
			r.refused(http.StatusForbidden, "POST", api.Base+"/dead/replay", many)
		}
		var done api.Replayed
		r.ask(http.StatusOK, "POST", letterPath(id)+"/replay", api.ReplayOne{To: "orders.again"}, &done)
	})
}

// TestPatchesNeedPayload: whether a patch applies tells what is in a body.
func TestPatchesNeedPayload(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		id := r.kill(1, "timeout")[0]
		bob := *r
		bob.who = &auth.Identity{Name: "bob", Kind: auth.KindToken, Grants: boss.Grants,
			Scopes: []auth.Scope{auth.View, auth.Operate}}
		patch := []api.PatchStep{{Op: "test", Path: "/card", Value: json.RawMessage(`"4111"`)}}
		bob.refused(http.StatusForbidden, "POST", letterPath(id)+"/replay", api.ReplayOne{Edit: &api.Edit{Patch: patch}})
		bob.refused(http.StatusForbidden, "POST", api.Base+"/dead/replay",
			api.ReplayMany{SelectLetters: api.SelectLetters{Topic: topic}, Patch: patch})
		bob.ask(http.StatusOK, "POST", letterPath(id)+"/replay", nil, nil)
	})
}

// TestRawBytesHoldHeaders: of what could not be decoded it is not known where a masked header is.
func TestRawBytesHoldHeaders(t *testing.T) {
	v := api.Message{Record: letterjson.Record{RawBase64: []byte("authorization: canary")}}
	Mask{Headers: []string{"authorization"}}.show(&v, true)
	if v.RawBase64 != nil || !v.Masked {
		t.Errorf("shown: %+v", v)
	}
}

// TestNamesOfTopicsAreNotTold: neither by the hint of what does not exist, nor by where a letter lies.
func TestNamesOfTopicsAreNotTold(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		id := r.kill(1, "timeout")[0]
		bob := r.as(auth.Grant{Role: auth.Operator, Topics: []string{"mails"}})
		if p := bob.refused(http.StatusNotFound, "GET", api.Base+"/topics/mails", nil); strings.Contains(p.Hint, topic) {
			t.Errorf("whoever sees mails is told: %s", p.Hint)
		}
		if p := r.refused(http.StatusNotFound, "GET", api.Base+"/topics/mails", nil); !strings.Contains(p.Hint, topic) {
			t.Errorf("whoever sees everything is told: %s", p.Hint)
		}
		bob.refused(http.StatusNotFound, "POST", "/admin/dlq/retry/"+id, nil)
		bob.refused(http.StatusForbidden, "POST", "/admin/dlq/retry/none?topic="+topic, nil)
		r.ask(http.StatusOK, "POST", "/admin/dlq/retry/"+id, nil, nil)
	})
}

func TestPublishRescheduleCancel(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		path := api.Base + "/topics/" + topic + "/messages"
		body := "hello"
		var p api.Published
		r.ask(http.StatusOK, "POST", path, api.NewMessage{Body: &body, Key: "k", Delay: jsontime.Duration(time.Hour),
			Headers: map[string]string{"a": "b"}}, &p)
		var v api.Views
		r.get(path+"/"+p.ID, &v)
		if m := v.Messages[0]; m.State != "delayed" || m.Key != "k" || *m.Body != body || m.Headers["a"] != "b" {
			t.Errorf("published %+v", m)
		}
		r.ask(http.StatusNoContent, "POST", path+"/"+p.ID+"/reschedule", api.Reschedule{}, nil)
		r.get(path+"/"+p.ID, &v)
		if m := v.Messages[0]; m.State != "ready" {
			t.Errorf("after run now it is %s", m.State)
		}
		r.refused(http.StatusBadRequest, "POST", path+"/"+p.ID+"/reschedule", api.Reschedule{})
		r.refused(http.StatusConflict, "POST", path+"/"+p.ID+"/reschedule?group=default", api.Reschedule{})
		r.ask(http.StatusNoContent, "DELETE", path+"/"+p.ID, nil, nil)
		r.refused(http.StatusNotFound, "GET", path+"/"+p.ID, nil)
		r.refused(http.StatusBadRequest, "POST", path, api.NewMessage{Body: &body, BodyBase64: []byte("x")})
		r.refused(http.StatusBadRequest, "POST", api.Base+"/topics/ferry.schedules/messages", api.NewMessage{Body: &body})
	})
}

func TestTopicsAndGroups(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		for i := range 5 {
			r.ask(http.StatusOK, "PUT", fmt.Sprintf("%s/topics/mails.%d", api.Base, i), api.Config{MaxMessages: 10}, nil)
		}
		var names []string
		for cursor := ""; ; {
			var p api.TopicPage
			r.as(auth.Grant{Role: auth.Viewer, Topics: []string{"mails.*"}}).get(api.Base+"/topics?limit=2&cursor="+cursor, &p)
			for _, topic := range p.Topics {
				names = append(names, topic.Topic)
			}
			if cursor = p.Next; cursor == "" {
				break
			}
		}
		if fmt.Sprint(names) != "[mails.0 mails.1 mails.2 mails.3 mails.4]" {
			t.Errorf("a viewer of mails sees %v", names)
		}
		group := api.Base + "/topics/" + topic + "/groups/billing"
		r.ask(http.StatusOK, "PUT", group, api.NewGroup{Order: "relaxed"}, nil)
		r.refused(http.StatusConflict, "PUT", group, api.NewGroup{Order: "strict"})
		r.ask(http.StatusNoContent, "POST", group+"/pause", nil, nil)
		r.publish(2)
		var g api.Group
		r.get(group, &g)
		if !g.Paused || g.Ready != 2 || g.Why != "The group is paused: 2 messages wait until it is resumed." {
			t.Errorf("paused: %+v", g)
		}
		r.ask(http.StatusNoContent, "POST", group+"/resume", nil, nil)
		r.get(group, &g)
		if g.Paused || !strings.HasPrefix(g.Why, "Nothing consumes it: 2 messages wait.") {
			t.Errorf("resumed: %+v", g)
		}
		var b api.Balance
		r.get(api.Base+"/topics/"+topic+"/balance", &b)
		if !b.Balanced {
			t.Errorf("not balanced: %v", b.Problems)
		}
		r.ask(http.StatusNoContent, "DELETE", group, nil, nil)
		r.refused(http.StatusNotFound, "GET", group, nil)
		r.ask(http.StatusNoContent, "DELETE", api.Base+"/topics/"+topic, nil, nil)
		r.refused(http.StatusNotFound, "GET", api.Base+"/topics/"+topic, nil)
		r.refused(http.StatusNotImplemented, "GET", api.Base+"/topics/mails.0/partitions", nil)
	})
}
