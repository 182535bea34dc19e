package admin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
)

func letterPath(id string) string { return api.Base + "/dead/" + topic + "/default/" + id }

func TestLetters(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		ids := r.kill(3, "timeout")
		r.kill(2, "fatal")
		var p api.MessagePage
		r.get(api.Base+"/dead?limit=2&where=reason+==+%22timeout%22", &p)
		if len(p.Messages) != 2 || p.Next == "" || p.Total != 5 || p.Messages[0].Dead.Recovery == "" {
			t.Errorf("listed %+v", p)
		}
		var tally api.Tally
		r.get(api.Base+"/dead/tally?by=reason", &tally)
		if tally.Matched != 5 || len(tally.Buckets) != 2 || tally.Buckets[0].Count != 3 ||
			tally.Buckets[0].Reason != "timeout" {
			t.Errorf("tallied %+v", tally)
		}
		patch := []api.PatchStep{{Op: "replace", Path: "/n", Value: json.RawMessage("null")}}
		var done api.Replayed
		r.ask(http.StatusOK, "POST", letterPath(ids[0])+"/replay",
			api.ReplayOne{Edit: &api.Edit{Patch: patch, Headers: map[string]string{"edited": "yes"}}}, &done)
		var v api.Views
		r.get(api.Base+"/topics/"+topic+"/messages/"+ids[0], &v)
		if m := v.Messages[0]; done.Done != 1 || m.State != "ready" || m.Headers["edited"] != "yes" ||
			!strings.Contains(*m.Body, `"n":null`) {
			t.Errorf("replayed %+v: %+v", done, m)
		}
		r.refused(http.StatusConflict, "POST", letterPath(ids[0])+"/replay", nil)
		r.ask(http.StatusNoContent, "DELETE", letterPath(ids[1]), nil, nil)
		r.refused(http.StatusNotFound, "GET", letterPath(ids[1]), nil)
		r.get(letterPath(ids[2]), nil)
	})
}

// TestExportsComeBack: what is exported as NDJSON is imported, and the other formats are what they say.
func TestExportsComeBack(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		ids := r.kill(2, "timeout")
		lines := r.do("GET", api.Base+"/dead/export?topic="+topic, "", nil).Body.String()
		var list []map[string]any
		if err := json.Unmarshal(r.do("GET", api.Base+"/dead/export?format=json", "", nil).Body.Bytes(), &list); err != nil ||
			len(list) != 2 {
			t.Errorf("as a list: %d, %v", len(list), err)
		}
		if err := json.Unmarshal(r.do("GET", api.Base+"/dead/export?format=json&where=attempts+%3E+9", "", nil).Body.Bytes(),
			&list); err != nil || len(list) != 0 {
			t.Errorf("an empty list: %d, %v", len(list), err)
		}
		csv := r.do("GET", "/admin/dlq/export?format=csv", "", nil)
		if !strings.HasPrefix(csv.Header().Get("Content-Type"), "text/csv") || strings.Count(csv.Body.String(), "\n") != 3 {
			t.Errorf("CSV: %s", csv.Body)
		}
		for _, id := range ids {
			r.ask(http.StatusNoContent, "DELETE", letterPath(id), nil, nil)
		}
		w := r.do("POST", api.Base+"/dead/import?topic=again", "application/x-ndjson", strings.NewReader(lines))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"published":2`) {
			t.Errorf("imported: %d %s", w.Code, w.Body)
		}
		w = r.do("POST", api.Base+"/dead/import", "application/x-ndjson", strings.NewReader(lines+"{}\n"))
		if w.Code != http.StatusBadRequest {
			t.Errorf("a bad line: %d %s", w.Code, w.Body)
		}
	})
}

// finished waits for an operation.
func (r *rig) finished(op api.Operation) api.Operation {
	r.Helper()
	for op.Ended == nil {
		time.Sleep(time.Second)
		r.get(api.Base+"/operations/"+op.ID, &op)
	}
	return op
}

// TestBulk: what is done to many is an operation: counted first, then done, recorded with filter and count.
func TestBulk(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		defer r.run()()
		r.kill(4, "timeout")
		r.kill(1, "fatal")
		many := api.ReplayMany{SelectLetters: api.SelectLetters{Topic: topic, Where: `reason == "timeout"`},
			Bulk: api.Bulk{DryRun: true}}
		var op api.Operation
		r.ask(http.StatusOK, "POST", api.Base+"/dead/replay", many, &op)
		if op = r.finished(op); op.State != "done" || op.Done != 4 || !op.DryRun || op.By != "user ann" {
			t.Errorf("dry run: %+v", op)
		}
		many.DryRun = false
		r.ask(http.StatusOK, "POST", api.Base+"/dead/replay", many, &op)
		op = r.finished(op)
		var topicNow api.Topic
		r.get(api.Base+"/topics/"+topic, &topicNow)
		if op.Done != 4 || topicNow.Ready != 4 || topicNow.Dead != 1 {
			t.Errorf("replayed %+v: %+v", op, topicNow)
		}
		r.ask(http.StatusOK, "POST", api.Base+"/topics/"+topic+"/purge", api.Purge{}, &op)
		if op = r.finished(op); op.Done != 4 {
			t.Errorf("purged %+v", op)
		}
		r.ask(http.StatusOK, "POST", api.Base+"/topics/"+topic+"/audit", api.AuditTopic{}, &op)
		if op = r.finished(op); op.State != "done" || op.Skipped != 0 {
			t.Errorf("audited %+v", op)
		}
		var page api.OperationPage
		r.get(api.Base+"/operations", &page)
		if len(page.Operations) != 4 {
			t.Errorf("%d operations", len(page.Operations))
		}
		r.as(auth.Grant{Role: auth.Operator, Topics: []string{"mails"}}).get(api.Base+"/operations", &page)
		if len(page.Operations) != 0 {
			t.Errorf("whoever sees mails sees %d operations on orders", len(page.Operations))
		}
		r.as(auth.Grant{Role: auth.Operator, Topics: []string{"mails"}}).refused(http.StatusForbidden, "GET",
			api.Base+"/operations/"+op.ID, nil)
		r.refused(http.StatusConflict, "POST", api.Base+"/operations/"+op.ID+"/cancel", nil)
		var actions api.ActionPage
		r.get(api.Base+"/actions", &actions)
		last := actions.Actions[len(actions.Actions)-2]
		if last.What != "letter.replay" || last.Filter != `reason == "timeout"` || last.Who != "user ann" ||
			last.Outcome != auth.Done || last.RequestID == "" {
			t.Errorf("recorded %+v", last)
		}
		var whole api.ActionVerdict
		if r.get(api.Base+"/actions/verify", &whole); len(whole.Problems) != 0 || whole.Checked != len(actions.Actions) {
			t.Errorf("the chain: %+v", whole)
		}
	})
}

// TestDeniedCallsAreRecorded: those that would have changed something.
func TestDeniedCallsAreRecorded(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		bob := r.as(auth.Grant{Role: auth.Viewer})
		bob.refused(http.StatusForbidden, "POST", api.Base+"/topics/"+topic+"/pause", nil)
		bob.refused(http.StatusForbidden, "GET", api.Base+"/doctor", nil)
		r.refused(http.StatusNotFound, "POST", api.Base+"/topics/nothing/pause", nil)
		var p api.ActionPage
		r.get(api.Base+"/actions", &p)
		if len(p.Actions) != 2 || p.Actions[1].Outcome != auth.Denied || p.Actions[1].Who != "user bob" ||
			p.Actions[0].Outcome != auth.Failed {
			t.Errorf("recorded %+v", p.Actions)
		}
	})
}

// TestClassicRoutes: those below /admin do what their counterparts do.
func TestClassicRoutes(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		defer r.run()()
		ids := r.kill(3, "timeout")
		r.kill(1, "expired")
		var tally api.Tally
		r.get("/admin/dlq/stats", &tally)
		if tally.Matched != 4 {
			t.Errorf("stats %+v", tally)
		}
		var p api.MessagePage
		r.get("/admin/dlq/messages?user=user-timeout", &p)
		if len(p.Messages) != 3 {
			t.Errorf("%d messages of the user", len(p.Messages))
		}
		var one api.Replayed
		r.ask(http.StatusOK, "POST", "/admin/dlq/retry/"+ids[0], nil, &one)
		if one.Done != 1 {
			t.Errorf("retried %+v", one)
		}
		r.refused(http.StatusNotFound, "POST", "/admin/dlq/retry/none", nil)
		var n classicCount
		r.ask(http.StatusOK, "POST", "/admin/dlq/purge", nil, &n)
		if n.Count != 1 || n.State != "done" {
			t.Errorf("purged %+v", n)
		}
		r.refused(http.StatusBadRequest, "POST", "/admin/dlq/purge?max_age=soon", nil)
		r.ask(http.StatusOK, "POST", "/admin/dlq/batch-retry", api.SelectLetters{Topic: topic, Where: `attempts > 0`}, &n)
		if n.Count != 2 || n.State != "done" {
			t.Errorf("retried %+v", n)
		}
		r.ask(http.StatusNoContent, "PUT", api.Base+"/limits/default/keys/ann%2F1/block", api.BlockKey{Reason: "spam"}, nil)
		var keys api.LimitKeys
		r.get("/admin/ratelimit/blocked", &keys)
		if len(keys.Keys) != 1 || keys.Keys[0].Key != "ann/1" || keys.Keys[0].Actor != "user ann" {
			t.Errorf("blocked %+v", keys.Keys)
		}
		r.ask(http.StatusNoContent, "POST", "/admin/ratelimit/unblock/ann%2F1", api.Because{Reason: "sorry"}, nil)
		r.ask(http.StatusNoContent, "POST", "/admin/ratelimit/whitelist/ann%2F1", nil, nil)
		var key api.LimitKey
		r.get("/admin/ratelimit/status/ann%2F1", &key)
		if key.Block != nil || !key.Whitelisted {
			t.Errorf("status %+v", key)
		}
		r.ask(http.StatusNoContent, "DELETE", "/admin/ratelimit/whitelist/ann%2F1", nil, nil)
	})
}
