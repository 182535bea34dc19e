package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/outbox"
)

// A message arrives whole, under the id of its row; what was rolled back does not arrive; the table is empty then.
func TestMessagesArriveWhole(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		b, db := broker(t, nil), d.open(t)
		at := time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
		sent := []*ferry.Message{
			{ID: "mine", Topic: "a", Key: "小明", Body: []byte{0, 255, '\''}, ContentType: "application/json",
				Headers:  map[string]string{"x": "ü\x00", "raw": "\xff"},
				Priority: driver.High, TTL: 2 * time.Hour, DedupID: "d", DedupWindow: time.Minute, MaxAttempts: 3,
				Retry: &ferry.RetryPolicy{Base: time.Second}},
			{Topic: "a", At: at, Priority: driver.Low},
			{Topic: "a", Key: "k", Delay: time.Hour},
		}
		insert(t, db, sent...)
		tx, err := db.BeginTx(t.Context(), nil)
		if err == nil {
			err = errors.Join(outbox.Insert(t.Context(), tx, &ferry.Message{Topic: "a", Key: "never"}), tx.Rollback())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(),
			"INSERT INTO ferry_outbox (id, topic, body) VALUES ('theirs', 'b', 'by another language')"); err != nil {
			t.Fatal(err)
		}
		r, _ := run(t, b, d, outbox.Options{})
		if s := drained(t, r); s.Failed != 0 || s.Relayed != 4 || !s.Leading {
			t.Errorf("%+v", s)
		}
		got := published(t, b, "a")
		for _, want := range sent {
			if len(got[want.Key]) != 1 {
				t.Fatalf("%d messages of key %q", len(got[want.Key]), want.Key)
			}
			m := got[want.Key][0].Clone()
			if want.OwnID = true; !m.At.IsZero() {
				m.At = m.At.UTC()
			}
			m.PublishedAt, m.Delay, want.Delay = time.Time{}, 0, 0
			if want.Key == "" {
				m.At = want.At // a broker tells when it is due
			}
			if len(m.Body) == 0 {
				m.Body = nil
			}
			if diff := cmp.Diff(want, m); diff != "" {
				t.Error(diff)
			}
		}
		if len(got) != 3 || len(published(t, b, "b")) != 1 {
			t.Errorf("%d keys", len(got))
		}
	})
}

// Rows keep their order by key over batches, with several relays of which one works at a time: nothing is published
// twice, and a relay that stops is followed.
func TestSeveralRelays(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		const keys, each = 7, 200
		b, db := broker(t, nil), d.open(t)
		fill := func(first int) {
			for i := range each / 2 {
				var ms []*ferry.Message
				for k := range keys {
					ms = append(ms, numbered("a", fmt.Sprint(k), first+i, 1)...)
				}
				insert(t, db, ms...)
			}
		}
		var relays []*outbox.Relay
		var stops []func()
		for range 3 {
			r, stop := run(t, b, d, outbox.Options{Batch: 30})
			relays, stops = append(relays, r), append(stops, stop)
		}
		leader := -1
		await(t, func() bool {
			for i, r := range relays {
				if s, err := r.Stats(t.Context()); err == nil && s.Leading {
					leader = i
				}
			}
			return leader >= 0
		})
		fill(0)
		drained(t, relays[leader])
		stops[leader]()
		fill(each / 2)
		var relayed, twice uint64
		await(t, func() bool {
			relayed, twice = 0, 0
			for _, r := range relays {
				s, err := r.Stats(t.Context())
				if err != nil || s.Pending > 0 {
					return false
				}
				relayed, twice = relayed+s.Relayed, twice+s.Duplicates
			}
			return true
		})
		if relayed != keys*each || twice != 0 {
			t.Errorf("%d relayed, %d twice", relayed, twice)
		}
		got := published(t, b, "a")
		for k := range keys {
			inOrder(t, got[fmt.Sprint(k)], each)
		}
	})
}

// A row whose transaction began before those of rows that are relayed already, and commits after it, is relayed all the
// same.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	d := postgres(t)
	db := d.open(t)
	early, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	insert(t, db, numbered("a", "before", 0, 1)...)
	if err := outbox.Insert(t.Context(), early, numbered("a", "early", 0, 1)...); err != nil {
		t.Fatal(err)
	}
	insert(t, db, numbered("a", "after", 0, 1)...)
	var committed atomic.Bool
	b := broker(t, func(context.Context, faulty.Call, func()) error {
		if !committed.Swap(true) { // between the look at the table and the removal
			if err := early.Commit(); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	r, _ := run(t, b, d, outbox.Options{})
	drained(t, r)
	await(t, func() bool { return len(published(t, b, "a")) == 3 })
}

// Rows that can never be published are set aside with the reason, and hold up nobody, not even their key.
func TestSetAside(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		b, db := broker(t, nil), d.open(t)
		for i := range 3 {
			insert(t, db, numbered("a", "k", i, 1)...)
			for _, bad := range []string{
				"INSERT INTO ferry_outbox (id, topic, key, body) VALUES ('bad', 'no topic', 'k', 'x')",
				"INSERT INTO ferry_outbox (id, topic, key, body) VALUES ('', 'a', 'k', 'x')",
				"INSERT INTO ferry_outbox (id, topic, key, body, options) VALUES ('bad', 'a', 'k', 'x', 'no JSON')",
				"INSERT INTO ferry_outbox (id, topic, key, body, options) VALUES ('bad', 'a', 'k', 'x', '{\"priority\":\"very\"}')",
				"INSERT INTO ferry_outbox (id, topic, key, body, headers) VALUES ('bad', 'a', 'k', 'x', '[]')",
				"INSERT INTO ferry_outbox (id, topic, key, body, options) VALUES ('bad', 'a', 'k', 'x', '{\"delay\":\"" +
					driver.Hold.String() + "\"}')",
			} {
				if _, err := db.ExecContext(t.Context(), bad); err != nil {
					t.Fatal(err)
				}
			}
			insert(t, db, &ferry.Message{Topic: "a", Key: "k", Body: make([]byte, b.Driver().Capabilities().MaxBody+1)})
		}
		r, _ := run(t, b, d, outbox.Options{})
		if s := drained(t, r); s.Failed != 21 || s.Relayed != 3 {
			t.Errorf("%+v", s)
		}
		inOrder(t, published(t, b, "a")["k"], 3)
		var reason string
		if err := db.QueryRowContext(t.Context(),
			"SELECT error FROM ferry_outbox WHERE headers = '[]' LIMIT 1").Scan(&reason); err != nil ||
			!strings.Contains(reason, "the column headers") {
			t.Errorf("%q %v", reason, err)
		}
		if _, err := db.ExecContext(t.Context(),
			"UPDATE ferry_outbox SET error = NULL, headers = '', id = 'mended' WHERE headers = '[]'"); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { s, err := r.Stats(t.Context()); return err == nil && s.Failed == 18 && s.Pending == 0 })
	})
}

// What a hook refuses is set aside, and only that, whatever bytes are in its reason.
func TestRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, d database) {
		inner := broker(t, nil).Driver()
		b, err := ferry.New(inner, ferry.Options{Hooks: ferry.Hooks{Authorize: func(_ context.Context, a ferry.Access) error {
			if string(a.Message.Body) == "secret" {
				return driver.NewError(ferry.ErrRefused, "no\x00\xff", "", nil)
			}
			return nil
		}}})
		if err != nil {
			t.Fatal(err)
		}
		insert(t, d.open(t), &ferry.Message{Topic: "a", Body: []byte("one")},
			&ferry.Message{Topic: "a", Body: []byte("secret")},
			&ferry.Message{Topic: "a", Key: "k", Body: []byte("two")},
			&ferry.Message{Topic: "a", Key: "k", Body: []byte("secret")},
			&ferry.Message{Topic: "a", Key: "k", Body: []byte("three")})
		r, _ := run(t, b, d, outbox.Options{})
		if s := drained(t, r); s.Failed != 2 || s.Relayed != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// A topic without room holds up no other, and no smaller row passes one of its key for which there is none.
func TestFullTopic(t *testing.T) {
	t.Parallel()
	d := sqlite(t)
	b, db := broker(t, nil), d.open(t)
	if err := b.Driver().EnsureTopic(t.Context(), "full", ferry.TopicConfig{MaxBytes: 1500}); err != nil {
		t.Fatal(err)
	}
	large := &ferry.Message{Topic: "full", Key: "k", Body: []byte(strings.Repeat("0000", 500))}
	insert(t, db, append(append(numbered("full", "first", 0, 1), large), numbered("full", "k", 1, 3)...)...)
	insert(t, db, numbered("other", "k", 0, 100)...)
	r, _ := run(t, b, d, outbox.Options{Batch: 10})
	await(t, func() bool { s, err := r.Stats(t.Context()); return err == nil && s.Relayed >= 101 })
	if got := published(t, b, "full"); len(got["k"]) != 0 {
		t.Errorf("%d followers passed one that waits for room", len(got["k"]))
	}
	inOrder(t, published(t, b, "other")["k"], 100)
	if err := b.Driver().AlterTopic(t.Context(), "full", ferry.TopicConfig{}); err != nil {
		t.Fatal(err)
	}
	drained(t, r)
	if got := published(t, b, "full")["k"]; len(got) != 4 || len(got[0].Body) != 2000 || string(got[1].Body) != "0001" ||
		string(got[3].Body) != "0003" {
		t.Errorf("%d messages", len(got))
	}
}

// While it is not known whether rows were stored, or they were not, they are tried again: none is lost, doubled or out
// of order.
func TestBrokerIsAway(t *testing.T) {
	t.Parallel()
	d := sqlite(t)
	b := broker(t, faulty.ByNumber(func(n int) faulty.Fault {
		return []faulty.Fault{nil, faulty.Lose(driver.ErrUnknown), faulty.Fail(driver.ErrNotApplied)}[n%3]
	}))
	insert(t, d.open(t), numbered("a", "k", 0, 20)...)
	r, _ := run(t, b, d, outbox.Options{Batch: 10})
	if s := drained(t, r); s.Relayed != 20 {
		t.Errorf("%+v", s)
	}
	inOrder(t, published(t, b, "a")["k"], 20)
}

// A database that takes no removals has no row published a second time.
func TestRemovalFails(t *testing.T) {
	t.Parallel()
	d := sqlite(t)
	b, db := broker(t, nil), d.open(t)
	insert(t, db, numbered("a", "k", 0, 20)...)
	execute(t, db, "CREATE TABLE removals (n)",
		"CREATE TRIGGER keep BEFORE DELETE ON "+outbox.Table+
			" BEGIN INSERT INTO removals VALUES (1); SELECT RAISE(FAIL, 'not now'); END")
	r, _ := run(t, b, d, outbox.Options{Batch: 10})
	await(t, func() bool { // it would publish the rows again between two tries
		var tries int
		err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM removals").Scan(&tries)
		return err == nil && tries >= 2
	})
	execute(t, db, "DROP TRIGGER keep")
	if s := drained(t, r); s.Relayed != 20 || s.Duplicates != 0 {
		t.Errorf("%+v", s)
	}
	inOrder(t, published(t, b, "a")["k"], 20)
}

// The broker knows ids for as long as Dedup says.
func TestDedup(t *testing.T) {
	t.Parallel()
	d := sqlite(t)
	b := broker(t, nil)
	insert(t, d.open(t), &ferry.Message{ID: "one", Topic: "a"}, &ferry.Message{ID: "one", Topic: "a"})
	r, _ := run(t, b, d, outbox.Options{Dedup: time.Hour})
	if s := drained(t, r); s.Duplicates != 1 || published(t, b, "a")[""][0].DedupWindow != time.Hour {
		t.Errorf("%+v", s)
	}
}

// What is wrong is said before anything is written.
func TestInvalid(t *testing.T) {
	t.Parallel()
	d := sqlite(t)
	b, db := broker(t, nil), d.open(t)
	for _, m := range []*ferry.Message{nil, {}, {Topic: "ferry.own"}, {Topic: "a", Delay: driver.Hold},
		{Topic: "a", TTL: -1}, {Topic: "a", Unique: &driver.Unique{ID: "u", TTL: time.Hour}}} {
		if err := outbox.Insert(t.Context(), db, &ferry.Message{Topic: "a"}, m); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if err := outbox.Insert(t.Context(), nil); !errors.Is(err, ferry.ErrInvalid) {
		t.Error(err)
	}
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM ferry_outbox").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
	if _, err := outbox.Schema(0); !errors.Is(err, ferry.ErrInvalid) {
		t.Error(err)
	}
	good := outbox.Options{Name: "a", Dialect: outbox.SQLite}
	for _, wrong := range []func(o *outbox.Options, b **ferry.Broker, db **sql.DB){
		func(_ *outbox.Options, b **ferry.Broker, _ **sql.DB) { *b = nil },
		func(_ *outbox.Options, _ **ferry.Broker, db **sql.DB) { *db = nil },
		func(o *outbox.Options, _ **ferry.Broker, _ **sql.DB) { o.Name = "" },
		func(o *outbox.Options, _ **ferry.Broker, _ **sql.DB) { o.Name = strings.Repeat("a", 117) },
		func(o *outbox.Options, _ **ferry.Broker, _ **sql.DB) { o.Dialect = 3 },
		func(o *outbox.Options, _ **ferry.Broker, _ **sql.DB) { o.Batch = 1001 },
		func(o *outbox.Options, _ **ferry.Broker, _ **sql.DB) { o.Every = -1 },
		func(o *outbox.Options, _ **ferry.Broker, _ **sql.DB) { o.Dedup = -1 },
	} {
		o, b, db := good, b, db
		wrong(&o, &b, &db)
		if _, err := outbox.New(b, db, o); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for of, want := range map[outbox.Dialect]string{outbox.PostgreSQL: "postgresql",
		outbox.SQLite: "sqlite", 9: "dialect(9)"} {
		if of.String() != want {
			t.Errorf("%v, want %s", of, want)
		}
	}
}
