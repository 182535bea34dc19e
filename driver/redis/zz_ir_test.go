package redis_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/uuid7"
)

func TestIR(t *testing.T) {
	addr := os.Getenv("IR_ADDR")
	if addr == "" {
		t.Skip()
	}
	n, _ := strconv.Atoi(os.Getenv("IR_PUBLISH"))
	k, _ := strconv.Atoi(os.Getenv("IR_DRAIN"))
	keys, _ := strconv.Atoi(os.Getenv("IR_KEYS"))
	batch, _ := strconv.Atoi(os.Getenv("IR_BATCH"))
	d := open(t, "redis://"+addr+"?timeout=60s", "ir")
	defer d.Close(context.Background())
	s, _ := d.Subscribe(context.Background(), driver.SubscribeOptions{Topic: "load", Instance: "tester", MaxRun: 100, Lease: time.Minute})
	body := make([]byte, 1024)
	for i := 0; i < n; i += batch {
		ms := make([]*driver.Message, batch)
		for j := range ms {
			ms[j] = &driver.Message{ID: uuid7.New(time.Now()), Topic: "load", Body: body}
			if keys > 0 {
				ms[j].Key = "key" + strconv.Itoa((i+j)%keys)
			}
		}
		if _, err := d.Publish(context.Background(), ms, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < k; {
		ds, err := s.Receive(context.Background(), batch)
		if err != nil {
			t.Fatal(err)
		}
		ack(t, s, ds)
		i += len(ds)
	}
}
