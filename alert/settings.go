package alert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/notify"
)

// settings are the options that Reload replaces, checked.
type settings struct {
	rules     []*compiled
	channels  map[string][]notify.Target
	silences  []Silence
	group     *notify.Digest
	heartbeat Heartbeat
}

// newSettings says what is wrong with a rule, a silence or the heartbeat.
func newSettings(hub *notify.Hub, o Options) (*settings, error) {
	rules, err := compile(o.Rules)
	if err != nil {
		return nil, err
	}
	if err := CheckSilences(o.Silences); err != nil {
		return nil, err
	}
	if o.Heartbeat.Every <= 0 {
		o.Heartbeat.Every = time.Minute
	}
	s := &settings{rules: rules, channels: o.Channels, silences: o.Silences, group: o.Group, heartbeat: o.Heartbeat}
	for _, r := range rules {
		if err := s.reachable(hub, r); err != nil {
			return nil, err
		}
	}
	if len(s.heartbeat.Targets) > 0 {
		if err := hub.Check(heartbeat(time.Time{}, s.heartbeat)); err != nil {
			return nil, fmt.Errorf("the heartbeat: %w", err)
		}
	}
	return s, nil
}

// reachable refuses a rule of which nobody would be told: one without a channel, and one whose notices the hub would
// refuse, for a single target that is wrong.
func (s *settings) reachable(hub *notify.Hub, r *compiled) error {
	switch {
	case r.Disabled:
		return nil
	case len(targets(r, s.channels)) > 0:
		if err := hub.Check(s.grouped(r.test(s.channels))); err != nil {
			return fmt.Errorf("the notices of rule %.60q: %w", r.Name, err)
		}
		return nil
	}
	return bad(r.Name, "the channels are "+strings.Join(slices.Sorted(maps.Keys(s.channels)), ", "),
		"none of its channels %v is there", r.Channels)
}

// grouped has a notice collected with others, as the options say.
func (s *settings) grouped(m *notify.Message) *notify.Message {
	if s.group != nil {
		m.WithDigest(*s.group)
	}
	return m
}

// Reload takes over Rules, Channels, Silences, Group and Heartbeat of other options, from the next look on; the other
// options stay as they are. What is wrong changes nothing. Alerts of a rule that is gone are over, and who was told of
// one is told so.
func (w *Watch) Reload(o Options) error {
	s, err := newSettings(w.o.Hub, o)
	if err == nil {
		w.settings.Store(s)
	}
	return err
}
