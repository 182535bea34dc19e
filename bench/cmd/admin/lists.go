package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/bench/system/redisserver"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/open"
)

const topic = "orders"

func measureDisk(ctx context.Context, s sizes) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "bench-admin-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b, err := disk.Open(ctx, disk.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close(context.WithoutCancel(ctx))) }()
	rows, _, err = measureLists(ctx, "disk", b, s)
	return rows, err
}

func measureRedis(ctx context.Context, s sizes) (rows []row, err error) {
	server, err := redisserver.Start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	b, err := open.URL(ctx, server.URL())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close(context.WithoutCancel(ctx))) }()
	rows, ours, err := measureLists(ctx, "Redis", b, s)
	if err != nil {
		return rows, err
	}
	peer, err := measurePeer(ctx, server.URL(), s)
	return append(rows,
		row{fmt.Sprintf("asynqmon 0.7.2, its queues at %d tasks", s.messages), peer.all.String(), ""},
		ratio("queues / topics", peer.all, ours.all),
		row{fmt.Sprintf("asynqmon 0.7.2, a page of %d of %d tasks", pageSize, s.messages), peer.page.String(), ""},
		ratio("page / page", peer.page, ours.page),
		ratio("page / page that is read anew", peer.page, ours.anew)), err
}

// lists are the times of what both have: everything that is there, and a page of one of them. The API reads the same
// page a few dozen times a second at most; anew are pages that nobody has asked for before.
type lists struct{ all, page, anew times }

func ratio(of string, theirs, ours times) row {
	return row{"asynqmon / Ferry on Redis, " + of + ", medians",
		fmt.Sprintf("%.1f×", float64(theirs.median)/float64(ours.median)), "≥ 5×"}
}

const pageSize = 50

// measureLists fills a topic and asks the admin API about it.
func measureLists(ctx context.Context, broker string, b *ferry.Broker, s sizes) (rows []row, ours lists, err error) {
	if err := b.Driver().EnsureGroup(ctx, topic, driver.DefaultGroup, ferry.GroupOptions{}); err != nil {
		return nil, ours, err
	}
	if err := fill(ctx, b, s.messages); err != nil {
		return nil, ours, err
	}
	a, err := admin.New(admin.Options{Broker: b})
	if err != nil {
		return nil, ours, err
	}
	boss := &auth.Identity{Kind: auth.KindLocal, Name: "bench", Grants: []auth.Grant{{Role: auth.Administrator}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.ServeHTTP(w, r.WithContext(auth.With(r.Context(), boss)))
	}))
	defer server.Close()
	messages := server.URL + api.Base + "/topics/" + topic + "/messages?limit=" + strconv.Itoa(pageSize)
	second, err := secondPage(ctx, messages)
	if err != nil {
		return nil, ours, err
	}
	var unused times
	for _, ask := range []struct {
		what, url string
		keep      *times
	}{
		{"topics", server.URL + api.Base + "/topics", &ours.all},
		{"counts of a topic", server.URL + api.Base + "/topics/" + topic, &unused},
		{"a page", messages, &ours.page},
		{"the next page", second, &unused},
		{"a page of a search", messages + "&where=" + url.QueryEscape("json.id == 999999999"), &unused},
	} {
		t, err := measure(ctx, ask.url, s.requests)
		if err != nil {
			return rows, ours, fmt.Errorf("%s on %s: %w", ask.what, broker, err)
		}
		*ask.keep = t
		rows = append(rows, row{fmt.Sprintf("%s, %s at %d messages", broker, ask.what, s.messages), t.String(),
			"p99 ≤ 100 ms"})
	}
	if ours.anew, err = measureWalk(ctx, messages, s.requests); err != nil {
		return rows, ours, err
	}
	rows = append(rows, row{fmt.Sprintf("%s, one page after the other, each read anew", broker), ours.anew.String(),
		"p99 ≤ 100 ms"})
	return rows, ours, nil
}

// measureWalk goes from page to page.
func measureWalk(ctx context.Context, first string, n int) (times, error) {
	all := make([]time.Duration, 0, n)
	for at := first; len(all) < n; {
		begin := time.Now()
		text, err := get(ctx, at)
		if err != nil {
			return times{}, err
		}
		all = append(all, time.Since(begin))
		var page api.MessagePage
		if err := json.Unmarshal(text, &page); err != nil {
			return times{}, err
		}
		if at = first + "&cursor=" + url.QueryEscape(page.Next); page.Next == "" {
			at = first // a small topic ends
		}
	}
	return timesOf(all), nil
}

// fill publishes messages with a small body.
func fill(ctx context.Context, b *ferry.Broker, n int) error {
	const batch = 500
	each, ctx := errgroup.WithContext(ctx)
	each.SetLimit(8)
	for from := 0; from < n; from += batch {
		each.Go(func() error {
			ms := make([]*ferry.Message, 0, batch)
			for i := from; i < min(n, from+batch); i++ {
				ms = append(ms, &ferry.Message{Topic: topic, Body: fmt.Appendf(nil, `{"id":%d}`, i),
					ContentType: "application/json"})
			}
			_, err := b.PublishBatch(ctx, ms)
			return err
		})
	}
	return each.Wait()
}

// measurePeer fills a queue of asynq, and asks asynqmon for its queues and for a page of tasks.
func measurePeer(ctx context.Context, address string, s sizes) (l lists, err error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		return l, err
	}
	at := asynq.RedisClientOpt{Addr: o.Addr, DB: o.DB}
	client := asynq.NewClient(at)
	defer func() { _ = client.Close() }()
	each, filling := errgroup.WithContext(ctx)
	const callers = 64
	for c := range callers {
		each.Go(func() error {
			for i := c; i < s.messages; i += callers {
				if _, err := client.EnqueueContext(filling, asynq.NewTask(topic, fmt.Appendf(nil, `{"id":%d}`, i))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := each.Wait(); err != nil {
		return l, err
	}
	monitor := asynqmon.New(asynqmon.Options{RootPath: "/", RedisConnOpt: at})
	defer func() { _ = monitor.Close() }()
	server := httptest.NewServer(monitor)
	defer server.Close()
	if l.all, err = measure(ctx, server.URL+"/api/queues", s.requests); err != nil {
		return l, err
	}
	l.page, err = measure(ctx, server.URL+"/api/queues/default/pending_tasks?page=1&size="+strconv.Itoa(pageSize),
		s.requests)
	return l, err
}

// times are those of some requests.
type times struct{ median, p99 time.Duration }

func (t times) String() string {
	return fmt.Sprintf("p50 %s, p99 %s", t.median.Round(10*time.Microsecond), t.p99.Round(10*time.Microsecond))
}

// measure asks one after another.
func measure(ctx context.Context, address string, n int) (times, error) {
	all := make([]time.Duration, 0, n)
	for i := range n + 5 { // the first few are not counted
		begin := time.Now()
		if _, err := get(ctx, address); err != nil {
			return times{}, err
		}
		if i >= 5 {
			all = append(all, time.Since(begin))
		}
	}
	return timesOf(all), nil
}

func timesOf(all []time.Duration) times {
	slices.Sort(all)
	return times{median: all[len(all)/2], p99: all[(len(all)*99+99)/100-1]}
}

func get(ctx context.Context, address string) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s: %.200s", address, res.Status, text)
	}
	return text, err
}
