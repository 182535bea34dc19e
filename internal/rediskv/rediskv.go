// Package rediskv keeps the named values of both drivers on Redis: each write is judged inside one script, by the
// server's clock.
//
// All keys of a bucket share one hash tag, so that a cluster keeps them together. Revisions are the server's
// microseconds, or one more than the last: they grow over everything but a fail-over that loses writes.
package rediskv

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kv"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// The scripts, each by name: one that is missing fails the build.
var (
	//go:embed lua/head.lua
	luaHead string
	//go:embed lua/apply.lua
	luaApply string
	//go:embed lua/get.lua
	luaGet string
	//go:embed lua/list.lua
	luaList string
	//go:embed lua/changes.lua
	luaChanges string
)

// Options of a KV. All are required.
type Options struct {
	Client goredis.UniversalClient
	// Tag begins the hash tag of every key, in which the name of the bucket follows. Each driver has its own: brokers of
	// two kinds may share a server and a prefix, and hold different things.
	Tag string
	// Refuse says why a level cannot be asked for, or nil.
	Refuse func(ctx context.Context, level driver.Durability) error
}

// KV is the named values under a tag. It implements driver.KV.
type KV struct {
	o                         Options
	waiters                   *kv.Waiters
	apply, get, list, changes redisconn.Script
	gatherer                  *gatherer

	mu       sync.Mutex
	listener *redisconn.Listener // nil until somebody waits
	buckets  map[string]string   // by their channels
	stop     context.CancelFunc
	heard    sync.WaitGroup
}

// New returns a KV.
func New(o Options) *KV {
	k := &KV{o: o, waiters: kv.NewWaiters(), buckets: map[string]string{},
		apply: script(luaApply), get: script(luaGet), list: script(luaList), changes: script(luaChanges)}
	k.gatherer = newGatherer(k)
	return k
}

func script(body string) redisconn.Script { return redisconn.NewScript(luaHead + "\n" + body + "\n") }

// Close ends waiting calls with ErrClosed. The client is not closed.
func (k *KV) Close() {
	k.waiters.End() // nobody begins to listen after it
	k.gatherer.close()
	k.mu.Lock()
	listener := k.listener
	k.mu.Unlock()
	if listener != nil {
		k.stop()
		listener.Close()
		k.heard.Wait()
	}
}

// keys returns the keys of a bucket, in the order of lua/head.lua. The first is the channel of its wake-ups, too.
func (k *KV) keys(bucket string) []string {
	tag := "{" + k.o.Tag + bucket + "}:"
	keys := make([]string, 0, 8)
	for _, name := range []string{"meta", "values", "names", "ends", "revisions", "gone", "requests", "asked"} {
		keys = append(keys, tag+name)
	}
	return keys
}

// run calls a script, and returns what it answers behind now.
func (k *KV) run(ctx context.Context, s *redisconn.Script, bucket string, level driver.Durability,
	args ...any) (now int64, rest redisconn.Reply, err error) {
	if k.waiters.Ended() {
		return 0, nil, kv.ErrClosed()
	}
	reply, err := s.RunAt(ctx, k.o.Client, level, k.keys(bucket), args...)
	return timed(reply, redisconn.Classify(err))
}

// timed takes the server's time off the answer of a script.
func timed(reply redisconn.Reply, err error) (now int64, rest redisconn.Reply, _ error) {
	if err != nil {
		return 0, nil, err
	}
	if len(reply) == 0 {
		return 0, nil, errShape()
	}
	now, _ = strconv.ParseInt(reply.Text(0), 10, 64)
	return now, reply[1:], nil
}

// errShape does not show the answer, as that of messages does: values may be secrets.
func errShape() error {
	return driver.NewError(driver.ErrUnknown, "the server gave an answer that makes no sense",
		"look for a proxy between this program and the server",
		errors.New("named values"))
}

func number(reply redisconn.Reply, i int) uint64 {
	n, _ := strconv.ParseUint(reply.Text(i), 10, 64)
	return n
}

// valueOf reads a value, as it was when the server's clock was now.
func valueOf(name string, fields redisconn.Reply, now int64) driver.Value {
	v := driver.Value{Name: name, Revision: number(fields, 0), Epoch: number(fields, 1), Data: []byte(fields.Text(4))}
	if v.Revision == 0 {
		return driver.Value{Name: name}
	}
	v.Written = time.UnixMicro(int64(number(fields, 2)))
	if ends := number(fields, 3); ends > 0 {
		v.Left = time.Duration(int64(ends)-now) * time.Millisecond
	}
	return v
}

// Get returns values by name.
func (k *KV) Get(ctx context.Context, bucket string, names ...string) ([]driver.Value, error) {
	if err := driver.CheckValueNames(bucket, names...); err != nil {
		return nil, err
	}
	vs := make([]driver.Value, 0, len(names))
	for chunk := range chunks(len(names), atOnce) {
		args := make([]any, 0, atOnce)
		for _, name := range names[chunk.from:chunk.to] {
			args = append(args, name)
		}
		now, reply, err := k.run(ctx, &k.get, bucket, 0, args...)
		if err != nil {
			return nil, err
		}
		if len(reply) != len(args) {
			return nil, errShape()
		}
		for i := range reply {
			vs = append(vs, valueOf(names[chunk.from+i], reply.List(i), now))
		}
	}
	return vs, nil
}

// atOnce is how many values one script reads or writes, so that none takes long.
const atOnce = 100

type span struct{ from, to int }

// chunks divides n into spans of at most so many.
func chunks(n, most int) func(yield func(span) bool) {
	return func(yield func(span) bool) {
		for from := 0; from < n; from += most {
			if !yield(span{from, min(n, from+most)}) {
				return
			}
		}
	}
}

// Apply makes each write one step.
func (k *KV) Apply(ctx context.Context, bucket string, o driver.KVOptions, ws ...driver.Write) []driver.WriteResult {
	results := make([]driver.WriteResult, len(ws))
	sound := make([]driver.Write, 0, len(ws))
	which := make([]*driver.WriteResult, 0, len(ws))
	for i := range ws {
		if results[i].Err = k.check(ctx, bucket, o, &ws[i]); results[i].Err == nil {
			sound, which = append(sound, ws[i]), append(which, &results[i])
		}
	}
	for chunk := range chunks(len(sound), atOnce) {
		k.applySome(ctx, bucket, o.Level, sound[chunk.from:chunk.to], which[chunk.from:chunk.to])
	}
	return results
}

func (k *KV) check(ctx context.Context, bucket string, o driver.KVOptions, w *driver.Write) error {
	if err := driver.CheckValueNames(bucket, w.Name); err != nil {
		return err
	}
	if o.Level != 0 {
		if err := k.o.Refuse(ctx, o.Level); err != nil {
			return err
		}
	}
	return w.Check()
}

// applySome makes writes in one call of the script.
func (k *KV) applySome(ctx context.Context, bucket string, level driver.Durability, ws []driver.Write,
	results []*driver.WriteResult) {
	var now int64
	var reply redisconn.Reply
	var err error
	if level.Replicas() > 0 {
		now, reply, err = k.runApply(ctx, bucket, level, ws)
	} else {
		now, reply, err = k.gatherer.write(ctx, bucket, ws)
	}
	for i := range ws {
		if err != nil {
			results[i].Err = err
			continue
		}
		*results[i] = resultOf(bucket, &ws[i], reply.List(i), now)
	}
}

// runApply makes writes of one bucket, and returns an answer to each.
func (k *KV) runApply(ctx context.Context, bucket string, level driver.Durability, ws []driver.Write) (now int64,
	reply redisconn.Reply, err error) {
	now, reply, err = k.run(ctx, &k.apply, bucket, level, appendWrites(limits(), ws)...)
	if err != nil {
		return 0, nil, err
	}
	if reply = reply.List(0); len(reply) != len(ws) {
		return 0, nil, errShape()
	}
	return now, reply, nil
}

// limits are the arguments that precede those of all writes.
func limits() []any {
	return []any{driver.MaxValues, driver.MaxRequests, driver.RequestFor.Milliseconds()}
}

// appendWrites tells the script of the writes of one bucket.
func appendWrites(args []any, ws []driver.Write) []any {
	args = append(args, len(ws))
	for i := range ws {
		args = append(args, words(&ws[i])...)
	}
	return args
}

// words tells a script of a write.
func words(w *driver.Write) []any {
	op, condition, ttl, fence, epoch, quiet := "", "", "", "", "", ""
	if w.Delete {
		op = "d"
	}
	switch w.If {
	case 0:
	case driver.Absent:
		condition = "a"
	default:
		condition = strconv.FormatUint(uint64(w.If), 10)
	}
	if w.TTL > 0 {
		ttl = strconv.FormatInt(min(int64(math.Ceil(float64(w.TTL)/float64(time.Millisecond))), longest), 10)
	}
	if w.Fence != nil {
		fence, epoch = w.Fence.Name, strconv.FormatUint(w.Fence.Epoch, 10)
	}
	if w.Quiet {
		quiet = "1"
	}
	return []any{w.Name, op, condition, ttl, fence, epoch, w.Request, quiet, w.Data}
}

// longest is the most milliseconds that a script can add to its clock exactly.
const longest = 1 << 50

func resultOf(bucket string, w *driver.Write, fields redisconn.Reply, now int64) driver.WriteResult {
	if len(fields) == 0 {
		return driver.WriteResult{Err: errShape()}
	}
	v := valueOf(w.Name, fields[1:], now)
	switch fields.Text(0) {
	case "ok":
		return driver.WriteResult{Value: v}
	case "conflict":
		return driver.WriteResult{Value: v, Err: w.Found(v)}
	case "lost":
		return driver.WriteResult{Value: v, Err: w.FenceLost()}
	case "full":
		return driver.WriteResult{Value: v, Err: driver.BucketFull(bucket)}
	}
	return driver.WriteResult{Err: errShape()}
}

// List returns a page of a bucket.
func (k *KV) List(ctx context.Context, q driver.KVQuery) (page driver.KVPage, err error) {
	if err := q.Check(); err != nil {
		return page, err
	}
	from, to := "["+q.Prefix, "+"
	if q.Prefix != "" {
		to = "(" + q.Prefix + "\xff" // no name has this byte
	}
	if q.After != "" && q.After >= q.Prefix {
		from = "(" + q.After
	}
	for first := true; ; first = false {
		now, reply, err := k.run(ctx, &k.list, q.Bucket, 0, from, to, atOnce)
		if err != nil {
			return driver.KVPage{}, err
		}
		if len(reply) < 3 {
			return driver.KVPage{}, errShape()
		}
		if first {
			page.Revision = number(reply, 0)
		}
		for i := 3; i+1 < len(reply); i += 2 {
			if len(page.Values) == q.Limit {
				page.Next = page.Values[q.Limit-1].Name
				return page, nil
			}
			page.Values = append(page.Values, valueOf(reply.Text(i), reply.List(i+1), now))
		}
		if reply.Text(1) == "" {
			return page, nil
		}
		from = "(" + reply.Text(2)
	}
}

// Wait returns the value when its revision is another.
func (k *KV) Wait(ctx context.Context, bucket, name string, after uint64) (v driver.Value, err error) {
	if err := driver.CheckValueNames(bucket, name); err != nil {
		return v, err
	}
	k.follow(bucket)
	var ends time.Time // when what was read expires; zero: nothing was read yet
	err = k.waiters.Await(ctx, bucket, name, func() (bool, time.Duration, error) {
		if left := time.Until(ends); left > 0 && k.unchanged(ctx, bucket, name, after) {
			return false, left, nil
		}
		vs, err := k.Get(ctx, bucket, name)
		if err != nil {
			return false, 0, err
		}
		v = vs[0]
		again := kv.Again(v)
		ends = time.Now().Add(again)
		return v.Revision != after, again, nil
	})
	return v, err
}

// unchanged reports whether a value that has not expired is there as it was. It is no script: whoever waits asks it
// every second, and most of the time nothing was written.
func (k *KV) unchanged(ctx context.Context, bucket, name string, after uint64) bool {
	v, err := k.o.Client.HGet(ctx, k.keys(bucket)[1], name).Result()
	if errors.Is(err, goredis.Nil) {
		return after == 0
	}
	revision, _, _ := strings.Cut(v, " ")
	return err == nil && revision == strconv.FormatUint(after, 10)
}

// Changes returns what was written after a revision.
func (k *KV) Changes(ctx context.Context, bucket string, after uint64) (vs []driver.Value, upTo uint64, err error) {
	if err := driver.CheckName("bucket", bucket); err != nil {
		return nil, after, err
	}
	k.follow(bucket)
	err = k.waiters.Await(ctx, bucket, "", func() (bool, time.Duration, error) {
		vs, upTo, err = k.changed(ctx, bucket, after)
		return upTo > after, time.Hour, err
	})
	if err != nil {
		return nil, after, err
	}
	return vs, upTo, nil
}

// changesAtOnce is how many values one call of Changes returns.
const changesAtOnce = 500

func (k *KV) changed(ctx context.Context, bucket string, after uint64) (vs []driver.Value, upTo uint64, err error) {
	now, reply, err := k.run(ctx, &k.changes, bucket, 0, strconv.FormatUint(after, 10), changesAtOnce)
	if err != nil {
		return nil, after, err
	}
	if len(reply) == 0 {
		return nil, after, driver.ChangesForgotten(bucket, after)
	}
	for i := 1; i+1 < len(reply); i += 2 {
		v := valueOf(reply.Text(i), reply.List(i+1), now)
		if len(reply.List(i+1)) == 1 {
			v = driver.Value{Name: v.Name, Revision: v.Revision, Deleted: true}
		}
		vs = append(vs, v)
	}
	return vs, number(reply, 0), nil
}

// follow begins to listen to what is written in a bucket. Should that fail, those who wait look once a second.
func (k *KV) follow(bucket string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiters.Ended() {
		return
	}
	if k.listener == nil {
		ctx, cancel := context.WithCancel(context.Background())
		k.listener, k.stop = redisconn.NewListener(k.o.Client), cancel
		wake := func(channel, name string) { k.waiters.Wake(k.bucketOf(channel), name) }
		k.heard.Go(func() {
			k.listener.Run(ctx, func(channel string) { wake(channel, "") }, wake, func() {})
		})
	}
	channel := k.keys(bucket)[0]
	if _, known := k.buckets[channel]; !known {
		k.buckets[channel] = bucket
		_ = k.listener.Follow(channel)
	}
}

func (k *KV) bucketOf(channel string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.buckets[channel]
}
