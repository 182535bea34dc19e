package kinds_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

func memoryRig(t *testing.T) *rig {
	t.Helper()
	b, err := open.URL(t.Context(), "memory://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(t.Context()) })
	return newRig(t, b)
}

// What is wrong with arguments is told when they are submitted, with its place if it is a filter.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	r := memoryRig(t)
	letters := func(where string) kinds.Letters { return kinds.Letters{Topic: topic, Where: where} }
	messages := func(m kinds.Messages) operation.Request { return kinds.Purge{Messages: m}.Request() }
	for _, c := range []struct {
		req  operation.Request
		says string
	}{
		{kinds.Replay{Letters: letters("reason ==")}.Request(), "broken at column"},
		{kinds.Replay{Letters: letters(""), Rate: -1}.Request(), "negative"},
		{kinds.Replay{Letters: letters(""), Patch: []byte(`[{"op":"x"}]`)}.Request(), "x"},
		{kinds.Replay{Letters: letters(""), To: "a", ToGroup: "b"}.Request(), "not to both"},
		{kinds.Replay{Letters: kinds.Letters{State: driver.StateInvalid}}.Request(), "KeepBody"},
		{kinds.Replay{Letters: kinds.Letters{Topic: "no such name!"}}.Request(), "no such name!"},
		{kinds.Remove{Letters: letters("nonsense == 1")}.Request(), "broken at column 1"},
		{kinds.Expire{Letters: letters("")}.Request(), "no limit"},
		{kinds.Expire{Letters: letters(""), MaxCount: -1}.Request(), "negative"},
		{kinds.Export{Letters: letters(""), File: "../x"}.Request(), "../x"},
		{kinds.Export{Letters: letters(""), File: "x", Format: "xml"}.Request(), "ndjson or csv"},
		{messages(kinds.Messages{}), "topic"},
		{messages(kinds.Messages{Topic: topic, States: []ferry.State{driver.StateDead}}), "cannot be chosen"},
		{messages(kinds.Messages{Topic: topic, Group: "g", States: []ferry.State{driver.StateDelayed}}),
			"belong to no group"},
		{messages(kinds.Messages{Topic: topic, Where: "key =="}), "broken at column"},
		{kinds.Reschedule{Messages: kinds.Messages{Topic: topic, States: []ferry.State{driver.StateReady}}}.Request(),
			"cannot be chosen"},
		{kinds.Reset{Topic: topic, Group: "g"}.Request(), "starts again"},
		{kinds.Reset{Topic: topic, Group: "g", To: "begin", Time: time.Now()}.Request(), "both"},
	} {
		if _, err := r.q.Submit(t.Context(), c.req); !errors.Is(err, ferry.ErrInvalid) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.req, err, c.says)
		}
	}
}

// An operation is about what was there when it was submitted.
func TestLaterMessagesAreLeftAlone(t *testing.T) {
	t.Parallel()
	r := memoryRig(t)
	r.publish("a", 10, 0)
	r.bury(10)
	r.publish("x", 10, time.Hour)
	replay, err := r.q.Submit(t.Context(), kinds.Replay{Letters: kinds.Letters{Topic: topic}}.Request())
	r.ok(err)
	purge, err := r.q.Submit(t.Context(),
		kinds.Purge{Messages: kinds.Messages{Topic: topic, States: []ferry.State{driver.StateDelayed}}}.Request())
	r.ok(err)
	time.Sleep(5 * time.Millisecond) // times of messages are exact to a millisecond
	r.publish("b", 10, 0)
	r.bury(10)
	r.publish("y", 10, time.Hour)
	w, err := operation.NewWorker(r.q, operation.WorkerOptions{})
	r.ok(err)
	r.ok(w.Drain(t.Context()))
	for _, id := range []string{replay.ID, purge.ID} {
		if op, err := r.q.Get(t.Context(), id); err != nil || op.State != operation.Done || op.Done != 10 {
			t.Errorf("%+v %v", op, err)
		}
	}
	r.expect(driver.StateReady, numbered("a", 0, 10)...)
	r.expect(driver.StateDead, numbered("b", 0, 10)...)
	r.expect(driver.StateDelayed, numbered("y", 0, 10)...)
	r.audit()
}

// A reset that was begun by a worker which is gone is not taken again: what was handled since would be handled twice.
func TestResetIsNotRepeated(t *testing.T) {
	t.Parallel()
	r := memoryRig(t)
	r.publish("a", 1, 0)
	const data = `{"kind":"group.reset","args":{"topic":"orders","group":"default","to":"end"},` +
		`"takes":1,"checkpoint":{"begun":true}}`
	r.ok(r.d.KV().Apply(t.Context(), driver.OperationsBucket, driver.KVOptions{},
		driver.Write{Name: "op/killed", Data: []byte(data)})[0].Err)
	w, err := operation.NewWorker(r.q, operation.WorkerOptions{})
	r.ok(err)
	r.ok(w.Drain(t.Context()))
	if op, err := r.q.Get(t.Context(), "killed"); err != nil || op.State != operation.Failed ||
		!strings.Contains(op.Problem, "it is not known") {
		t.Errorf("%+v %v", op, err)
	}
	r.expect(driver.StateReady, "a0000")
}

// An export is there when it is whole, for its owner alone.
func TestExport(t *testing.T) {
	t.Parallel()
	r := memoryRig(t)
	dir := t.TempDir()
	q, err := operation.New(r.b, kinds.Exports(r.b, dir))
	r.ok(err)
	r.q = q
	r.publish("a", 20, 0)
	r.bury(20)
	r.do(kinds.Export{Letters: kinds.Letters{Topic: topic}, File: "saved.ndjson"}.Request(), operation.Done, 20)
	text, err := os.ReadFile(filepath.Join(dir, "saved.ndjson"))
	r.ok(err)
	info, err := os.Stat(filepath.Join(dir, "saved.ndjson"))
	r.ok(err)
	all, err := os.ReadDir(dir)
	r.ok(err)
	if strings.Count(string(text), "\n") != 20 || info.Mode().Perm()&0o077 != 0 || len(all) != 1 {
		t.Errorf("%d lines, %v, %v", strings.Count(string(text), "\n"), info.Mode(), all)
	}
	r.expect(driver.StateDead, numbered("a", 0, 20)...)
}
