package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/instance"
	"github.com/ferrymq/ferry/internal/machine"
	"github.com/ferrymq/ferry/worker"
)

const (
	// DefaultBeat is how often a member says that it lives.
	DefaultBeat = 3 * time.Second

	mostRunning   = 20      // messages that a beat tells of
	mostText      = 256     // bytes of a version, an address, an error
	mostLabels    = 8 << 10 // bytes of all labels
	mostFigures   = 64      // of Options.Figures
	leaveTimeout  = 2 * time.Second
	lookForOthers = 10 // beats between two looks for another of the same name
)

// Options of a Member.
type Options struct {
	// Name is how operators call it. Members that live at the same time should have different names; a process that is
	// started again may have its old one. Letters, digits, dot, dash and underscore. Defaults to host and process id.
	Name string
	// Version is that of the program. Defaults to what the build says.
	Version string
	// Address is where it can be reached, for people. Defaults to none.
	Address string
	// Labels are for people, and for programs that choose members. Default to none.
	Labels map[string]string
	// Workers are those that it tells of, and that obey commands. Default to none.
	Workers []*worker.Worker
	// Figures are more that each beat tells, for rules of alerts: those of alert.Parts, for example. At most 64 are told.
	// Defaults to none.
	Figures func() map[string]float64
	// Beat is how often it says that it lives. It is gone three beats after a kill. Defaults to DefaultBeat, and is at
	// least a second.
	Beat time.Duration
}

// Member is this process among the members of a broker.
type Member struct {
	broker *ferry.Broker
	kv     driver.KV
	log    *slog.Logger
	o      Options
	self   Info // what does not change
	begin  time.Time
	sample machine.Sample // of the last beat
	began  atomic.Bool
}

// Join makes a member of this process. Nobody sees it until Run.
func Join(b *ferry.Broker, o Options) (*Member, error) {
	o, err := o.resolve(b)
	if err != nil {
		return nil, err
	}
	m := &Member{broker: b, kv: b.Driver().KV(), log: b.Logger(), o: o, begin: time.Now(), sample: machine.Read()}
	m.self = Info{Name: o.Name, Incarnation: strings.ToLower(rand.Text()[:10]), Host: instance.Host(), PID: os.Getpid(),
		Version: o.Version, Address: o.Address,
		Labels: maps.Clone(o.Labels), Started: time.Now().UTC().Round(time.Millisecond), Beat: o.Beat}
	return m, nil
}

func (o Options) resolve(b *ferry.Broker) (Options, error) {
	bad := func(hint, format string, args ...any) error {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf(format, args...), hint, nil)
	}
	if b == nil {
		return o, bad("open one first, with open.URL for example", "the broker of the member is nil")
	}
	if o.Name == "" {
		o.Name = instance.Process()
	}
	if o.Beat == 0 {
		o.Beat = DefaultBeat
	}
	if o.Version == "" {
		if build, ok := debug.ReadBuildInfo(); ok {
			o.Version = build.Main.Version
		}
	}
	if err := driver.CheckName("member", o.Name); err != nil {
		return o, err
	}
	size := 0
	for k, v := range o.Labels {
		size += len(k) + len(v)
	}
	switch {
	case o.Beat < time.Second || o.Beat > time.Hour:
		return o, bad("use a second to an hour", "member %q has a beat of %v", o.Name, o.Beat)
	case len(o.Version) > mostText || len(o.Address) > mostText:
		return o, bad(fmt.Sprintf("use at most %d bytes", mostText),
			"the version or the address of member %q is too long", o.Name)
	case size > mostLabels:
		return o, bad(fmt.Sprintf("use at most %d", mostLabels), "member %q has %d bytes of labels", o.Name, size)
	}
	if i := slices.Index(o.Workers, nil); i >= 0 {
		return o, bad("make it with worker.New", "worker %d of member %q is nil", i, o.Name)
	}
	return o, nil
}

// Name returns the name of the member.
func (m *Member) Name() string { return m.self.Name }

// value is the name of its value, and where its commands lie.
func (m *Member) value() string { return m.self.Name + "/" + m.self.Incarnation }

// Run says that the member lives, and has it obey commands, until ctx ends; then it leaves, and nobody sees it any
// more. Let ctx end after the workers have stopped, so that it is seen while they drain. A broker that is away for a
// time does not end it; Run returns errors that trying again cannot mend.
func (m *Member) Run(ctx context.Context) error {
	if m.began.Swap(true) {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("member %q runs, or has run", m.self.Name),
			"make a new one with Join", nil)
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var both sync.WaitGroup
	for _, work := range []func(context.Context) error{m.live, m.obey} {
		both.Go(func() {
			if err := work(running); err != nil {
				stop(err)
			}
		})
	}
	both.Wait()
	m.leave(context.WithoutCancel(ctx))
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(running)
}

// live beats until ctx ends.
func (m *Member) live(ctx context.Context) error {
	tick := time.NewTicker(m.o.Beat)
	defer tick.Stop()
	away, shared := false, false
	for n := 1; ; n++ {
		r := m.beat(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case r.Err != nil && permanent(r.Err):
			return r.Err
		case r.Err != nil && !away:
			m.log.WarnContext(ctx, "a beat of the member did not arrive; trying again", "member", m.self.Name, "error", r.Err)
		case r.Err == nil && n%lookForOthers == 2:
			shared = m.lookForOthers(ctx, shared)
		}
		away = r.Err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// beat writes once what the member is and does.
func (m *Member) beat(ctx context.Context) driver.WriteResult {
	ctx, cancel := context.WithTimeout(ctx, m.o.Beat)
	defer cancel()
	return m.kv.Apply(ctx, membersBucket, driver.KVOptions{},
		driver.Write{Name: m.value(), Data: m.data(), TTL: lifetime(m.o.Beat), Quiet: true})[0]
}

// lookForOthers warns of a member of the same name that lives, and reports whether there is one.
func (m *Member) lookForOthers(ctx context.Context, known bool) bool {
	all, err := members(ctx, m.kv, m.self.Name+"/")
	if err != nil {
		return known
	}
	for _, i := range all {
		if i.Incarnation == m.self.Incarnation || known {
			continue
		}
		m.log.WarnContext(ctx, "another member has the same name: give each its own", "member", m.self.Name, "host", i.Host,
			"pid", i.PID, "incarnation", i.Incarnation)
	}
	return len(all) > 1
}

// leave takes the member out of the list. If that fails it is gone three beats later.
func (m *Member) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if r := m.kv.Apply(ctx, membersBucket, driver.KVOptions{},
		driver.Write{Name: m.value(), Delete: true})[0]; r.Err != nil && !permanent(r.Err) {
		m.log.WarnContext(ctx, "the member could not say that it leaves", "member", m.self.Name, "error", r.Err)
	}
}

// data is what a beat tells. Where there is too much, it leaves out running messages and then handlers.
func (m *Member) data() []byte {
	info := m.self
	info.Uptime = time.Since(m.begin).Round(time.Millisecond)
	now := machine.Read()
	info.CPU, info.Memory = now.ProcessCPU(m.sample), now.Resident
	m.sample = now
	info.Figures = m.figures()
	for _, w := range m.o.Workers {
		info.Workers = append(info.Workers, describe(w))
		for _, r := range w.Running(0) {
			info.Running = append(info.Running, RunningInfo(r))
		}
	}
	slices.SortStableFunc(info.Running, func(a, b RunningInfo) int { return int(min(max(b.For-a.For, -1), 1)) })
	info.Running = info.Running[:min(len(info.Running), mostRunning)]
	data, _ := json.Marshal(info) // which cannot fail
	if len(data) > driver.MaxValue {
		info.Running = nil
		data, _ = json.Marshal(info)
	}
	for most := 128; len(data) > driver.MaxValue; most /= 2 {
		for i := range info.Workers {
			w := &info.Workers[i]
			n := min(len(w.Handlers), most)
			w.Handlers, w.Omitted = w.Handlers[:n], w.Omitted+len(w.Handlers)-n
		}
		info.Workers = info.Workers[:min(len(info.Workers), max(most, 1))]
		data, _ = json.Marshal(info)
	}
	return data
}

// figures are what Options.Figures tells, as far as a beat has room. What is no number is not told: JSON has no NaN.
func (m *Member) figures() map[string]float64 {
	if m.o.Figures == nil {
		return nil
	}
	told := map[string]float64{}
	all := m.o.Figures()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v := all[name]; len(told) < mostFigures && len(name) <= mostText && !math.IsNaN(v) && !math.IsInf(v, 0) {
			told[name] = v
		}
	}
	return told
}

func describe(w *worker.Worker) WorkerInfo {
	s := w.Stats()
	out := WorkerInfo{Instance: s.Instance, Concurrency: s.Concurrency, Running: s.Running, Zombies: s.Zombies}
	health := w.Health()
	for i, c := range s.Consumers {
		h := HandlerInfo{Topic: c.Topic, Group: c.Group, Quiet: c.Quiet, Running: c.Running, Waiting: c.Waiting,
			Keys: c.Lanes, Emergencies: c.Emergencies,
			Acked: c.Acked, Retried: c.Retried, Dead: c.Dead, Dropped: c.Dropped,
			PerSecond: c.Recent.PerSecond, ErrorRate: c.Recent.ErrorRate(), Mean: c.Recent.Latency.Mean,
			Recent: RecentInfo{Handled: c.Recent.Handled, Failed: c.Recent.Failed, Retried: c.Recent.Retried,
				Timeouts:  c.Recent.Timeouts,
				Latencies: c.Recent.Latencies, Waits: c.Recent.Waits}}
		if i < len(health) {
			h.State = health[i].State
			if health[i].Err != nil {
				h.Err = fmt.Sprintf("%.*s", mostText, health[i].Err)
			}
		}
		out.Handlers = append(out.Handlers, h)
	}
	return out
}
