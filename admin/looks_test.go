package admin

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// counted is a broker that counts how often it was asked.
type counted struct {
	driver.Driver
	calls atomic.Int64
}

func (c *counted) Topics(ctx context.Context, names ...string) ([]driver.TopicInfo, error) {
	c.calls.Add(1)
	return c.Driver.Topics(ctx, names...)
}

func (c *counted) Stats(ctx context.Context, topic string) (driver.TopicStats, error) {
	c.calls.Add(1)
	return c.Driver.Stats(ctx, topic)
}

func (c *counted) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	c.calls.Add(1)
	return c.Driver.Browse(ctx, q)
}

// flooded runs a test with an API on a broker that counts, in virtual time.
func flooded(t *testing.T, test func(r *rig, d *counted)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.New(t.Context(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := &counted{Driver: inner}
		b, err := ferry.New(d, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.Close(context.Background()) }()
		a, err := New(Options{Broker: b})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.EnsureGroup(t.Context(), topic, "default", ferry.GroupOptions{}); err != nil {
			t.Fatal(err)
		}
		test(&rig{T: t, broker: b, api: a, who: boss}, d)
	})
}

// TestAFloodCostsTheBrokerLittle: a second of requests for the same thing, far more than the server lets one client
// ask, has the broker asked a few dozen times, and everybody sees what is there, at most a moment late.
func TestAFloodCostsTheBrokerLittle(t *testing.T) {
	flooded(t, func(r *rig, d *counted) {
		for _, path := range []string{"/topics", "/topics/" + topic, "/topics/" + topic + "/messages",
			"/topics/" + topic + "/groups/default"} {
			d.calls.Store(0)
			const requests = 1000
			var all sync.WaitGroup
			for i := range requests {
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Second / requests)
					if w := r.do(http.MethodGet, api.Base+path, "", nil); w.Code != http.StatusOK {
						r.Errorf("%s answered %d: %s", path, w.Code, w.Body)
					}
				})
			}
			all.Wait()
			// a list of messages asks for counts and eight states
			if n := d.calls.Load(); n > 9*(freshLooks+int64(time.Second/lookFor)) {
				r.Errorf("%d requests for %s have the broker asked %d times", requests, path, n)
			}
			r.publish(1)
			time.Sleep(lookFor)
			if ready := r.ready(); ready == 0 {
				r.Errorf("a message is not seen after %v", lookFor)
			}
			time.Sleep(time.Second)
		}
	})
}

// ready is how many messages of the topic are ready, as the API tells.
func (r *rig) ready() int64 {
	r.Helper()
	var all api.TopicPage
	r.get(api.Base+"/topics", &all)
	return all.Topics[0].Ready
}

// TestWhoAsksNowAndThenSeesWhatIsThere: the first looks of a second are never shared, and what is changed here is seen
// at once.
func TestWhoAsksNowAndThenSeesWhatIsThere(t *testing.T) {
	flooded(t, func(r *rig, _ *counted) {
		for i := range int64(freshLooks - 1) {
			r.publish(1)
			if ready := r.ready(); ready != i+1 {
				r.Fatalf("%d messages are ready, want %d", ready, i+1)
			}
		}
		for range 10 { // many in one moment: they share
			r.ready()
		}
		r.publish(1)
		if ready := r.ready(); ready != freshLooks-1 {
			r.Errorf("%d messages are ready, want those of a moment ago", ready)
		}
		body := "x"
		r.ask(http.StatusOK, http.MethodPost, api.Base+"/topics/"+topic+"/messages", api.NewMessage{Body: &body}, nil)
		if ready := r.ready(); ready != freshLooks+1 {
			r.Errorf("%d messages are ready, want %d: whoever changes something sees it", ready, freshLooks+1)
		}
		time.Sleep(time.Second)
		r.publish(1)
		if ready := r.ready(); ready != freshLooks+2 {
			r.Errorf("%d messages are ready, want %d", ready, freshLooks+2)
		}
	})
}

// TestSharedLooksGiveNothingAway: what is shared is what the broker has; each who asks sees their part of it.
func TestSharedLooksGiveNothingAway(t *testing.T) {
	flooded(t, func(r *rig, d *counted) {
		if err := d.EnsureGroup(r.Context(), "mails", "default", ferry.GroupOptions{}); err != nil {
			r.Fatal(err)
		}
		r.publish(1)
		bob := r.as(auth.Grant{Role: auth.Viewer, Topics: []string{"mails"}})
		viewer := r.as(auth.Grant{Role: auth.Viewer})
		for range 3 * freshLooks {
			var all, his api.TopicPage
			if r.get(api.Base+"/topics", &all); len(all.Topics) != 2 {
				r.Fatalf("the administrator sees %+v", all)
			}
			if bob.get(api.Base+"/topics", &his); len(his.Topics) != 1 || his.Topics[0].Topic != "mails" {
				r.Fatalf("bob sees %+v", his)
			}
			path := api.Base + "/topics/" + topic + "/messages"
			var page api.MessagePage
			if r.get(path, &page); page.Messages[0].Body == nil {
				r.Fatalf("the administrator sees %+v", page)
			}
			if viewer.get(path, &page); page.Messages[0].Body != nil || !page.Messages[0].Hidden {
				r.Fatalf("the viewer sees %+v", page)
			}
			bob.refused(http.StatusForbidden, http.MethodGet, path, nil)
		}
	})
}

// TestWhatIsRememberedIsBounded: by number, and large pages are not kept at all.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	var l looks
	for i := range 10 * mostLooks {
		if _, err := shared(&l, topicLook(strconv.Itoa(i)), func() (int, error) { return i, nil }); err != nil ||
			len(l.at) > mostLooks {
			t.Fatalf("%d things are remembered, %v", len(l.at), err)
		}
	}
	reads := 0
	for range 3 * freshLooks {
		_, _ = shared(&l, driver.Query{Topic: topic}, func() (driver.Page, error) {
			reads++
			return driver.Page{Entries: []driver.Entry{{Raw: []byte(strings.Repeat("x", largestLook+1))}}}, nil
		})
		_, err := shared(&l, statsLook(topic), func() (int, error) { return 0, driver.ErrNotFound })
		if err == nil {
			t.Fatal("an error was forgotten")
		}
	}
	if reads != 3*freshLooks {
		t.Errorf("a large page was read %d times", reads)
	}
}
