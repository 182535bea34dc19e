package admin

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Bounds of what many requests ask the broker.
const (
	freshLooks  = 20                    // in a second at the same thing: each tells what is there now
	lookFor     = 50 * time.Millisecond // after them: how old an answer may be
	mostLooks   = 64                    // things that are told apart
	largestLook = 64 << 10              // bytes of messages; a larger page is not remembered
)

// looks bounds how often the broker is asked for the same thing: a flood of requests costs it a few calls a second, and
// those who publish do not feel it. Who asks now and then gets what is there at that moment.
type looks struct {
	mu    sync.Mutex
	at    map[any]*seen
	epoch int // of what is remembered: one that began before a change is not
}

// seen is one thing that was asked for, and what was seen of it.
type seen struct {
	since time.Time // the second that is counted
	n     int
	read  time.Time // when value was asked for
	value any
}

// Keys of looks. A page has its query.
type (
	topicsLook struct{}
	topicLook  string
	statsLook  string
)

// shared returns what read does, or what it returned a moment ago if the same is asked for all the time. What it
// returns belongs to others, too, and is not changed. Errors are not remembered.
func shared[T any](l *looks, key any, read func() (T, error)) (T, error) {
	now := time.Now()
	found, epoch, often := l.find(key, now)
	if value, ok := found.(T); ok {
		return value, nil
	}
	value, err := read()
	if err == nil && often {
		l.keep(key, value, now, epoch)
	}
	return value, err
}

// find returns what is remembered, if it counts, and whether to remember what comes instead.
func (l *looks) find(key any, now time.Time) (value any, epoch int, often bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.at[key]
	if k == nil {
		if l.at == nil || len(l.at) >= mostLooks {
			l.at = map[any]*seen{}
		}
		k = &seen{since: now}
		l.at[key] = k
	}
	if now.Sub(k.since) >= time.Second {
		*k = seen{since: now}
	}
	if k.n++; k.n <= freshLooks {
		return nil, l.epoch, k.n == freshLooks
	}
	if now.Sub(k.read) < lookFor {
		return k.value, l.epoch, false
	}
	return nil, l.epoch, true
}

func (l *looks) keep(key, value any, read time.Time, epoch int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.at[key]; k != nil && l.epoch == epoch && read.After(k.read) && !large(value) {
		k.value, k.read = value, read
	}
}

// large reports whether a page has too many bytes to be kept in memory.
func large(value any) bool {
	p, ok := value.(driver.Page)
	size := 0
	for _, e := range p.Entries {
		size += len(e.Raw)
		if e.Message != nil {
			size += len(e.Body)
		}
	}
	return ok && size > largestLook
}

// forget is called when something was changed here: whoever changed it sees it at once.
func (l *looks) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
	for _, k := range l.at {
		k.value, k.read = nil, time.Time{}
	}
}

// topics returns the topics of the broker. The slice is the caller's.
func (a *API) topics(ctx context.Context) ([]driver.TopicInfo, error) {
	all, err := shared(&a.looks, topicsLook{}, func() ([]driver.TopicInfo, error) { return a.driver.Topics(ctx) })
	return slices.Clone(all), err
}

// settings returns what is known of one topic, which may be gone: then there is none.
func (a *API) settings(ctx context.Context, topic string) ([]driver.TopicInfo, error) {
	return shared(&a.looks, topicLook(topic), func() ([]driver.TopicInfo, error) { return a.driver.Topics(ctx, topic) })
}

func (a *API) stats(ctx context.Context, topic string) (driver.TopicStats, error) {
	return shared(&a.looks, statsLook(topic), func() (driver.TopicStats, error) { return a.driver.Stats(ctx, topic) })
}

func (a *API) browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	return shared(&a.looks, q, func() (driver.Page, error) { return a.driver.Browse(ctx, q) })
}
