package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/worker"
)

// asking is a codec that needs a registry, which does not answer at first. It tells what it was asked for.
type asking struct {
	codec.Codec
	down int
	told []string
}

func (*asking) ContentType() string { return "text/asking" }

func (a *asking) Unmarshal(ctx context.Context, topic string, data []byte, v any) error {
	_, limited := ctx.Deadline()
	a.told = append(a.told, fmt.Sprint(topic, " ", limited))
	if a.down--; a.down >= 0 {
		return fmt.Errorf("the registry is away: %w", codec.ErrUnavailable)
	}
	return a.Codec.Unmarshal(ctx, topic, data, v)
}

// TestCodecThatCannotDecodeYet: while a registry is away a message is retried, and is not called invalid. Its codec is
// told the topic, and has the handler's time limit.
func TestCodecThatCannotDecodeYet(t *testing.T) {
	for name, register := range map[string]func(w *worker.Worker, got *[]string){
		"single": func(w *worker.Worker, got *[]string) {
			worker.Handle(w, topic, func(_ context.Context, m *ferry.Msg[string]) error {
				*got = append(*got, fmt.Sprint(m.Value, " ", m.Attempt))
				return nil
			}, worker.Timeout(time.Minute))
		},
		"batch": func(w *worker.Worker, got *[]string) {
			worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[string]) error {
				for _, m := range ms {
					*got = append(*got, fmt.Sprint(m.Value, " ", m.Attempt))
				}
				return nil
			}, worker.Timeout(time.Minute))
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, _ *rig) {
				c := &asking{Codec: codec.Raw, down: 1}
				b := brokerWith(t, c)
				w := worker.New(b, worker.Options{})
				var got []string
				register(w, &got)
				if _, err := ferry.Publish(context.Background(), b, topic, "hello", ferry.Codec(c)); err != nil {
					t.Fatal(err)
				}
				stop := start(t, w)
				pause(time.Hour)
				mustStop(t, stop)
				equal(t, got, []string{"hello 2"})
				equal(t, c.told, []string{topic + " true", topic + " true"})
			})
		})
	}
}

// TestUnknownContentType: a message that no codec reads is kept whole, and the error says which there are.
func TestUnknownContentType(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.Handle(w, topic, func(context.Context, *ferry.Msg[string]) error { return nil })
		m := &ferry.Message{Topic: topic, Body: []byte{0, 0xff}, ContentType: "text/strange",
			Headers: map[string]string{"k": "v"}}
		if _, err := r.broker.Publish(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		dead := r.browse(topic, driver.StateDead)
		if len(dead) != 1 || dead[0].Dead.Reason != driver.ReasonInvalidMessage || string(dead[0].Body) != "\x00\xff" ||
			dead[0].Headers["k"] != "v" ||
			!strings.Contains(dead[0].Dead.Error, "application/json") {
			t.Errorf("%+v", dead)
		}
	})
}

func brokerWith(t *testing.T, codecs ...codec.Codec) *ferry.Broker {
	t.Helper()
	b, err := ferry.New(newMemory(t, memory.Options{}), ferry.Options{Codecs: codecs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}
