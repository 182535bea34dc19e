package admin

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/notify"
)

// watched runs a hub with channel "chat", and a watch with one rule that fires as long as the broker is there.
func (r *rig) watched() (stop func()) {
	r.Helper()
	chat := notify.Func(func(_ context.Context, n notify.Rendered) (notify.Sent, error) {
		if n.To != "ops" {
			return notify.Sent{}, &notify.Error{Code: notify.CodeInvalidTarget, Text: "there is no " + n.To}
		}
		if all := n.Data["at_all"]; all != "" {
			return notify.Sent{ID: n.Title + " " + n.Body + " " + all}, nil
		}
		return notify.Sent{ID: "v1"}, nil
	})
	hub, err := notify.New(r.broker, notify.Options{Channels: map[string]notify.Channel{"chat": chat},
		Templates: map[string]notify.MessageTemplate{"full": {Title: "{host}", Body: "{left:.1%}"}}})
	if err != nil {
		r.Fatal(err)
	}
	collector, err := monitor.NewCollector(r.broker, monitor.CollectorOptions{})
	if err != nil {
		r.Fatal(err)
	}
	r.api.o.Watch, err = alert.New(r.broker, alert.Options{Hub: hub, Collector: collector,
		Rules:    []alert.Rule{{Name: "it runs", When: "broker_up > 0", Cooldown: time.Minute}},
		Channels: map[string][]notify.Target{"ops": {{Channel: "chat", To: "ops"}}},
		Silences: []alert.Silence{{Rule: "quiet"}}})
	if err != nil {
		r.Fatal(err)
	}
	stop = runtest.Start(r, hub.Run, r.api.o.Watch.Run)
	time.Sleep(30 * time.Second) // it looked, and told
	synctest.Wait()
	return stop
}

func TestAlertsOverHTTP(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		var found api.AlertList
		r.get(api.Base+"/alerts", &found)
		if found.Alive || len(found.Alerts) != 0 {
			t.Errorf("before anybody evaluates: %+v", found)
		}
		r.refused(http.StatusNotImplemented, "GET", api.Base+"/alert-rules", nil)
		defer r.watched()()
		var b api.Broker
		if r.get(api.Base+"/broker", &b); !b.Alerts {
			t.Error("the broker's page does not tell that rules are evaluated")
		}
		r.get(api.Base+"/alerts", &found)
		if !found.Alive || found.Rules != 1 || len(found.Alerts) != 1 || found.Alerts[0].Status != "firing" ||
			found.Alerts[0].Notices != 1 {
			t.Errorf("%+v", found)
		}
		r.ask(http.StatusNoContent, "POST", api.Base+"/alerts/it%20runs/system/ack", api.Acknowledge{}, nil)
		r.refused(http.StatusNotFound, "POST", api.Base+"/alerts/it%20runs/orders%2Fbilling/ack", api.Acknowledge{})
		var shown api.AlertShown
		r.get(api.Base+"/alerts/it%20runs/system", &shown)
		if shown.Acknowledged != boss.Name || len(shown.History) != 2 {
			t.Errorf("%+v", shown)
		}
		var history api.AlertHistory
		if r.get(api.Base+"/alert-history?limit=1", &history); len(history.Entries) != 1 ||
			history.Entries[0].What != "acknowledged" {
			t.Errorf("%+v", history)
		}
	})
}

func TestSilencesOverHTTP(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		defer r.watched()()
		var made api.Silence
		r.ask(http.StatusOK, "POST", api.Base+"/silences",
			api.NewSilence{Rule: "it*", Duration: api.Duration(time.Hour), Comment: "deployment"}, &made)
		var found api.SilenceList
		r.get(api.Base+"/silences", &found)
		if len(found.Silences) != 2 || found.Silences[0].ID != made.ID || found.Silences[0].Who != boss.Name ||
			found.Silences[1].Rule != "quiet" {
			t.Errorf("%+v", found)
		}
		r.ask(http.StatusNoContent, "DELETE", api.Base+"/silences/"+made.ID, nil, nil)
		if r.get(api.Base+"/silences", &found); len(found.Silences) != 1 {
			t.Errorf("%+v", found)
		}
		short := api.NewSilence{Duration: api.Duration(time.Millisecond)}
		r.refused(http.StatusBadRequest, "POST", api.Base+"/silences", short)
	})
}

func TestAlertRulesOverHTTP(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		defer r.watched()()
		var made api.AlertRule
		rule := api.AlertRule{When: "ready > threshold", Threshold: 5, For: api.Duration(time.Minute)}
		r.ask(http.StatusOK, "PUT", api.Base+"/alert-rules/deep", rule, &made)
		var found api.AlertRuleList
		r.get(api.Base+"/alert-rules", &found)
		if len(found.Rules) != 2 || found.Rules[0].Kept || !found.Rules[1].Kept || found.Rules[1].Threshold != 5 ||
			len(found.Figures) == 0 {
			t.Errorf("%+v", found)
		}
		var sent api.Notification
		r.ask(http.StatusOK, "POST", api.Base+"/alert-rules/deep/test", nil, &sent)
		if sent.Total != 1 {
			t.Errorf("%+v", sent)
		}
		r.refused(http.StatusNotFound, "POST", api.Base+"/alert-rules/none/test", nil)
		rule.When = "redy > 1"
		p := r.refused(http.StatusBadRequest, "PUT", api.Base+"/alert-rules/deep", rule)
		if p.Hint == "" {
			t.Errorf("%+v", p)
		}
		r.ask(http.StatusNoContent, "DELETE", api.Base+"/alert-rules/deep", nil, nil)
		r.refused(http.StatusNotFound, "DELETE", api.Base+"/alert-rules/deep", nil)
	})
}

func TestNotificationsOverHTTP(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		message := func(channel, to string) api.NewNotification {
			return api.NewNotification{Title: "t", Body: "b", Priority: "high",
				Targets: []api.NotifyTarget{{Channel: channel, To: to}}}
		}
		r.refused(http.StatusNotFound, "POST", api.Base+"/notifications", message("chat", "ops"))
		defer r.watched()()
		var sent api.Notification
		r.ask(http.StatusOK, "POST", api.Base+"/notifications", message("chat", "ops"), &sent)
		time.Sleep(time.Second)
		r.get(api.Base+"/notifications/"+sent.ID, &sent)
		if sent.Status != "success" || sent.Targets[0].VendorID != "v1" {
			t.Errorf("%+v", sent)
		}
		later := message("chat", "ops")
		later.At = &api.Time{Time: time.Now().Add(time.Hour)}
		r.ask(http.StatusOK, "POST", api.Base+"/notifications", later, &sent)
		var cancelled api.CancelledNotification
		r.ask(http.StatusOK, "POST", api.Base+"/notifications/"+sent.ID+"/cancel", nil, &cancelled)
		if cancelled.Cancelled != 1 {
			t.Errorf("%+v", cancelled)
		}
		full := api.NewNotification{Template: "full", Targets: later.Targets, Data: map[string]string{"at_all": "true"},
			Variables: map[string]any{"host": "db1", "left": 0.02}}
		r.ask(http.StatusOK, "POST", api.Base+"/notifications", full, &sent)
		time.Sleep(time.Second)
		r.get(api.Base+"/notifications/"+sent.ID, &sent)
		if sent.Status != "success" || sent.Targets[0].VendorID != "db1 2.0% true" {
			t.Errorf("%+v", sent)
		}
		full.Title = "t"
		r.refused(http.StatusBadRequest, "POST", api.Base+"/notifications", full)
		full.Title, full.Template = "", "none"
		r.refused(http.StatusBadRequest, "POST", api.Base+"/notifications", full)
		p := r.refused(http.StatusBadRequest, "POST", api.Base+"/notifications", message("mail", "ops"))
		if p.Detail != `there is no channel "mail"` || p.Hint != "the hub has chat" {
			t.Errorf("%+v", p)
		}
		r.ask(http.StatusOK, "POST", api.Base+"/channels/chat/test", api.TestChannel{To: "team"}, &sent)
		time.Sleep(11 * time.Second) // it was announced
		var found api.NotifyChannelList
		r.get(api.Base+"/channels", &found)
		if len(found.Channels) != 1 || found.Channels[0].Failed != 1 || found.Channels[0].LastCode != "INVALID_TARGET" {
			t.Errorf("%+v", found)
		}
	})
}
