package ferry_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// What a program does with topics, groups and single messages needs no other package's types.
func TestBrokerIsManagedWithTypesOfThisPackage(t *testing.T) {
	b := newBroker(t, nil, ferry.Options{})
	d, ctx := b.Driver(), t.Context()
	if err := d.EnsureTopic(ctx, "orders", ferry.TopicConfig{Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	r, err := ferry.Publish(ctx, b, "orders", 1, ferry.Delay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.EnsureGroup(ctx, "orders", "audit", ferry.GroupOptions{Start: ferry.Beginning()}); err != nil {
		t.Fatal(err)
	}
	page, err := d.Browse(ctx, ferry.Query{Topic: "orders", State: "delayed"})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].ID != r.ID {
		t.Fatalf("page %+v, error %v", page, err)
	}
	if errs := d.Delete(ctx, []ferry.Target{{Topic: "orders", Ref: page.Entries[0].Ref}}); errs[0] != nil {
		t.Error(errs[0])
	}
}

func TestPositions(t *testing.T) {
	at := time.Now()
	if p := ferry.Beginning(); p != (ferry.Position{From: driver.FromBegin}) {
		t.Errorf("Beginning is %+v", p)
	}
	if p := ferry.Since(at); p != (ferry.Position{From: driver.FromTime, Time: at}) {
		t.Errorf("Since is %+v", p)
	}
}

// logged is a driver with a log.
type logged struct {
	driver.Driver
	driver.Log
}

func TestLogIsHandedOutWhereTheDriverHasOne(t *testing.T) {
	if _, err := newBroker(t, nil, ferry.Options{}).Log(); !errors.Is(err, ferry.ErrUnsupported) {
		t.Errorf("without: got %v, want ErrUnsupported", err)
	}
	l, err := newBroker(t, logged{Driver: newMemory(t, memory.Options{})}, ferry.Options{}).Log()
	if err != nil || l == nil {
		t.Errorf("with one: got %v, %v", l, err)
	}
}
