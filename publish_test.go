package ferry_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

type order struct {
	ID   int    `json:"id"`
	Name string `json:"name,omitempty"`
}

func TestPublishCarriesEveryOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, nil, ferry.Options{})
		ctx := t.Context()
		start := time.Now()
		policy := ferry.Delays(time.Second, time.Minute)
		r, err := ferry.Publish(ctx, b, "orders", order{1, "世界"},
			ferry.Key("user-1"), ferry.Delay(time.Minute), ferry.Priority(ferry.High), ferry.TTL(time.Hour),
			ferry.Dedup("d1", time.Minute), ferry.Header("a", "1"), ferry.Header("b", "2"), ferry.ID("order-1"),
			ferry.MaxAttempts(7), ferry.Retry(policy), ferry.Level(ferry.InMemory))
		if err != nil || r.ID != "order-1" || r.Duplicate {
			t.Fatalf("receipt %+v, error %v", r, err)
		}
		d := receive(t, b, "orders", 1)[0]
		if got := time.Since(start); got != time.Minute {
			t.Errorf("delivered after %v, want exactly the delay", got)
		}
		want := &ferry.Message{ID: "order-1", OwnID: true, Topic: "orders", Key: "user-1",
			Body:        []byte(`{"id":1,"name":"世界"}`),
			ContentType: "application/json", Headers: map[string]string{"a": "1", "b": "2"},
			Priority: ferry.High, Delay: time.Minute,
			TTL: time.Hour, DedupID: "d1", DedupWindow: time.Minute, MaxAttempts: 7, Retry: &policy, PublishedAt: start}
		if diff := cmp.Diff(want, d.Message); diff != "" {
			t.Errorf("the delivered message differs (-want +got):\n%s", diff)
		}
		m, err := ferry.Decode[order](t.Context(), b, d)
		if err != nil || m.Value != (order{1, "世界"}) {
			t.Errorf("decoded %+v, error %v", m, err)
		}
	})
}

func TestScheduleIsKeptByTheBrokersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, nil, ferry.Options{})
		start := time.Now()
		for name, o := range map[string]ferry.PublishOption{"future": ferry.At(start.Add(3 * time.Hour)),
			"past": ferry.At(start.Add(-time.Hour)), "negative": ferry.Delay(-time.Second)} {
			if _, err := ferry.Publish(t.Context(), b, name, 1, o); err != nil {
				t.Fatal(err)
			}
		}
		receive(t, b, "past", 1)
		receive(t, b, "negative", 1)
		if got := time.Since(start); got != 0 {
			t.Errorf("a schedule in the past and a negative delay took %v, want none", got)
		}
		receive(t, b, "future", 1)
		if got := time.Since(start); got != 3*time.Hour {
			t.Errorf("delivered after %v, want 3h", got)
		}
	})
}

func TestPublishChangesNothingOfTheCallers(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	headers := map[string]string{"a": "1"}
	m := &ferry.Message{Topic: "orders", Body: []byte("x"), Headers: headers}
	if _, err := b.Publish(t.Context(), m, ferry.Header("b", "2"), ferry.Key("k")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&ferry.Message{Topic: "orders", Body: []byte("x"), Headers: map[string]string{"a": "1"}},
		m); diff != "" {
		t.Errorf("the caller's message was changed:\n%s", diff)
	}
}

func TestBytesAreNotEncoded(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	body := []byte{0, 255, '"'}
	if _, err := ferry.Publish(t.Context(), b, "raw", body); err != nil {
		t.Fatal(err)
	}
	d := receive(t, b, "raw", 1)[0]
	if string(d.Body) != string(body) || d.ContentType != codec.Raw.ContentType() {
		t.Errorf("got %q as %s", d.Body, d.ContentType)
	}
	if m, err := ferry.Decode[[]byte](t.Context(), b, d); err != nil || string(m.Value) != string(body) {
		t.Errorf("decoded %v, error %v", m, err)
	}
}

func TestBadInputIsRefusedWithAHint(t *testing.T) {
	b := newBroker(t, newMemory(t, memory.Options{MaxBody: 1000}), ferry.Options{})
	closed, err := memory.Open(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	publish := func(topic string, opts ...ferry.PublishOption) func() error {
		return func() error { _, err := ferry.Publish(t.Context(), b, topic, order{ID: 1}, opts...); return err }
	}
	for name, c := range map[string]struct {
		call func() error
		kind error
	}{
		"empty topic":            {publish(""), ferry.ErrInvalid},
		"topic with a space":     {publish("my orders"), ferry.ErrInvalid},
		"topic with braces":      {publish("a{b}"), ferry.ErrInvalid},
		"topic too long":         {publish(strings.Repeat("x", 129)), ferry.ErrInvalid},
		"topic from a dot":       {publish(".hidden"), ferry.ErrInvalid},
		"key with a newline":     {publish("t", ferry.Key("a\nb")), ferry.ErrInvalid},
		"key not UTF-8":          {publish("t", ferry.Key("\xff")), ferry.ErrInvalid},
		"key too long":           {publish("t", ferry.Key(strings.Repeat("k", 257))), ferry.ErrInvalid},
		"priority out of range":  {publish("t", ferry.Priority(9)), ferry.ErrInvalid},
		"TTL zero":               {publish("t", ferry.TTL(0)), ferry.ErrInvalid},
		"TTL negative":           {publish("t", ferry.TTL(-1)), ferry.ErrInvalid},
		"TTL shorter than delay": {publish("t", ferry.TTL(time.Second), ferry.Delay(time.Minute)), ferry.ErrInvalid},
		"TTL before the schedule": {publish("t", ferry.TTL(time.Second), ferry.At(time.Now().Add(time.Hour))),
			ferry.ErrInvalid},
		"delay and schedule":     {publish("t", ferry.Delay(1), ferry.At(time.Now())), ferry.ErrInvalid},
		"dedup without window":   {publish("t", ferry.Dedup("x", 0)), ferry.ErrInvalid},
		"dedup window too long":  {publish("t", ferry.Dedup("x", 365*24*time.Hour)), ferry.ErrInvalid},
		"empty id":               {publish("t", ferry.ID("")), ferry.ErrInvalid},
		"no attempts":            {publish("t", ferry.MaxAttempts(0)), ferry.ErrInvalid},
		"header without a name":  {publish("t", ferry.Header("", "x")), ferry.ErrInvalid},
		"header too large":       {publish("t", ferry.Header("h", strings.Repeat("x", 65<<10))), ferry.ErrTooLarge},
		"level not available":    {publish("t", ferry.Level(ferry.Synced)), ferry.ErrUnsupported},
		"replicas not available": {publish("t", ferry.Level(ferry.Replicated(2))), ferry.ErrUnsupported},
		"value not encodable": {func() error {
			_, err := ferry.Publish(t.Context(), b, "t", math.Inf(1))
			return err
		}, ferry.ErrInvalid},
		"body over the limit": {func() error {
			_, err := ferry.Publish(t.Context(), b, "t", make([]byte, 1001))
			return err
		}, ferry.ErrTooLarge},
		"level of a message": {func() error {
			_, err := ferry.NewMessage(t.Context(), b, "t", 1, ferry.Level(ferry.InMemory))
			return err
		}, ferry.ErrInvalid},
		"nil message": {func() error { _, err := b.Publish(t.Context(), nil); return err }, ferry.ErrInvalid},
		"nil in a batch": {func() error {
			_, err := b.PublishBatch(t.Context(), []*ferry.Message{nil})
			return err
		}, ferry.ErrInvalid},
		"nil broker": {func() error {
			_, err := ferry.Publish(t.Context(), nil, "t", 1)
			return err
		}, ferry.ErrInvalid},
		"nil callback": {func() error {
			return b.PublishFunc(t.Context(), &ferry.Message{Topic: "t"}, nil)
		}, ferry.ErrInvalid},
		"closed broker": {func() error {
			_, err := ferry.Publish(t.Context(), closed, "t", 1)
			return err
		}, ferry.ErrClosed},
		"cancelled context": {func() error {
			_, err := ferry.Publish(cancelled, b, "t", 1)
			return err
		}, ferry.ErrNotApplied},
		"nil driver": {func() error { _, err := ferry.New(nil, ferry.Options{}); return err }, ferry.ErrInvalid},
		"negative MaxAsync": {func() error {
			_, err := memory.Open(t.Context(), memory.Options{Broker: ferry.Options{MaxAsync: -1}})
			return err
		}, ferry.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.call()
			if !errors.Is(err, c.kind) {
				t.Fatalf("error %v, want %v", err, c.kind)
			}
			if e := new(ferry.Error); !errors.As(err, &e) || e.Hint == "" {
				t.Errorf("%v has no hint", err)
			}
		})
	}
	if topics, err := b.Driver().Topics(t.Context()); err != nil || len(topics) != 0 {
		t.Errorf("bad input left topics %v behind (error %v)", topics, err)
	}
}

func TestNothingOfABatchIsSentWhenOneIsInvalid(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	_, err := b.PublishBatch(t.Context(), []*ferry.Message{{Topic: "t"}, {Topic: "not ok"}})
	if !errors.Is(err, ferry.ErrInvalid) || !strings.Contains(err.Error(), "message 2 of 2") {
		t.Errorf("error %v should name the second message", err)
	}
	if topics, _ := b.Driver().Topics(t.Context()); len(topics) != 0 {
		t.Errorf("topics %v exist", topics)
	}
}

func TestBatchReceiptsFollowTheMessages(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	if err := b.Driver().EnsureTopic(t.Context(), "small", driver.TopicConfig{MaxMessages: 2}); err != nil {
		t.Fatal(err)
	}
	var ms []*ferry.Message
	for _, id := range []string{"a", "b", "c", "a"} {
		ms = append(ms, &ferry.Message{ID: id, Topic: "small"})
	}
	rs, err := b.PublishBatch(t.Context(), ms)
	if !errors.Is(err, ferry.ErrFull) || len(rs) != 4 {
		t.Fatalf("receipts %v, error %v", rs, err)
	}
	for i, want := range []struct {
		dup bool
		err error
	}{{}, {}, {err: ferry.ErrFull}, {dup: true}} {
		if rs[i].ID != ms[i].ID || rs[i].Duplicate != want.dup || !errors.Is(rs[i].Err, want.err) {
			t.Errorf("receipt %d is %+v, want %+v", i, rs[i], want)
		}
	}
}

func TestPublishingAnIDAgainIsADuplicate(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	for i, dup := range []bool{false, true, true} {
		r, err := ferry.Publish(t.Context(), b, "orders", i, ferry.ID("x"))
		if err != nil || r.Duplicate != dup || r.ID != "x" {
			t.Errorf("publish %d: %+v, error %v", i, r, err)
		}
		if i == 1 {
			receive(t, b, "orders", 1) // also after it was handled and is gone
		}
	}
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	for name, d := range map[string]*ferry.Delivery{
		"broken body":          {Message: &ferry.Message{Body: []byte("{"), ContentType: "application/json"}},
		"unknown content type": {Message: &ferry.Message{Body: []byte("{}"), ContentType: "application/x-strange"}},
		"wrong shape":          {Message: &ferry.Message{Body: []byte(`"text"`), ContentType: "application/json"}},
	} {
		if _, err := ferry.Decode[order](t.Context(), b, d); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
	if m, err := ferry.Decode[order](t.Context(), b,
		&ferry.Delivery{Message: &ferry.Message{Body: []byte(`{"id":3}`)}}); err != nil || m.Value.ID != 3 {
		t.Errorf("a body without a content type: %+v, error %v", m, err)
	}
}

// Topics of Ferry's own take nothing from programs: not by any way of publishing.
func TestReservedTopics(t *testing.T) {
	t.Parallel()
	b := newBroker(t, nil, ferry.Options{})
	ctx := t.Context()
	m := &ferry.Message{Topic: "ferry.schedules", Body: []byte("a")}
	_, single := ferry.Publish(ctx, b, m.Topic, "a")
	_, batch := b.PublishBatch(ctx, []*ferry.Message{m})
	_, async := b.PublishAsync(ctx, m)
	for name, err := range map[string]error{"Publish": single, "PublishBatch": batch, "PublishAsync": async} {
		if !errors.Is(err, ferry.ErrInvalid) || !strings.Contains(err.Error(), "'ferry.'") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if topics, err := b.Driver().Topics(ctx); err != nil || len(topics) != 0 {
		t.Errorf("%v, %v", topics, err)
	}
	if _, err := ferry.Publish(ctx, b, "ferryboats", "a"); err != nil {
		t.Error(err)
	}
}

// Without a context a publish panics in its caller, sends nothing, and leaves the broker as it was.
func TestNilContext(t *testing.T) {
	b := open()
	defer b.Close(context.Background())
	m := &ferry.Message{Topic: "jobs"}
	for name, call := range map[string]func(ctx context.Context){
		"Publish":      func(ctx context.Context) { _, _ = b.Publish(ctx, m) },
		"PublishBatch": func(ctx context.Context) { _, _ = b.PublishBatch(ctx, []*ferry.Message{m}) },
		"PublishAsync": func(ctx context.Context) { _, _ = b.PublishAsync(ctx, m) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s without a context does not panic", name)
				}
			}()
			call(nil)
		}()
	}
	if _, err := b.Publish(t.Context(), m); err != nil {
		t.Error(err)
	}
	if s, err := b.Driver().Stats(t.Context(), "jobs"); err != nil || s.Published != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// The longest delay there is delays, like any other; it does not hold the message for ever.
func TestLongestDelay(t *testing.T) {
	b := open()
	defer b.Close(context.Background())
	r, err := ferry.Publish(t.Context(), b, "jobs", 1, ferry.Delay(math.MaxInt64))
	if err != nil {
		t.Fatal(err)
	}
	page, err := b.Driver().Browse(t.Context(), ferry.Query{Topic: "jobs", State: driver.StateDelayed})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].ID != r.ID {
		t.Errorf("%+v %v", page, err)
	}
}

// A policy that would be ignored is refused when it is published.
func TestPolicyThatIsNotMeant(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	for name, p := range map[string]ferry.RetryPolicy{"no delays": ferry.Delays(),
		"limit below base": ferry.Exponential(time.Minute, time.Second)} {
		if _, err := ferry.Publish(t.Context(), b, "t", 1, ferry.Retry(p)); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Options of a batch are for all its messages: an id among them would make one message of many, and nobody would know.
func TestBatchWithOneID(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	two := []*ferry.Message{{Topic: "t", Body: []byte("1")}, {Topic: "t", Body: []byte("2")}}
	for name, o := range map[string]ferry.PublishOption{"ID": ferry.ID("a"), "Dedup": ferry.Dedup("a", time.Minute)} {
		if rs, err := b.PublishBatch(t.Context(), two, o); !errors.Is(err, ferry.ErrInvalid) || rs != nil ||
			!strings.Contains(err.Error(), "hint") {
			t.Errorf("%s for two: %+v, %v", name, rs, err)
		}
		if rs, err := b.PublishBatch(t.Context(), two[:1], o); err != nil || len(rs) != 1 {
			t.Errorf("%s for one: %+v, %v", name, rs, err)
		}
	}
	same := []*ferry.Message{{Topic: "t", ID: "b"}, {Topic: "t", ID: "b"}} // as the caller wants it
	if rs, err := b.PublishBatch(t.Context(), same, ferry.Level(ferry.InMemory)); err != nil || !rs[1].Duplicate {
		t.Errorf("%+v, %v", rs, err)
	}
}
