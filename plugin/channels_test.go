package plugin_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/plugin"
)

// line is a channel whose sends end as a test says.
type line struct {
	send   func() error
	limits func() notify.Limits
}

func (l line) Send(context.Context, notify.Rendered) (notify.Sent, error) {
	return notify.Sent{ID: "1"}, l.send()
}

func (l line) Limits() notify.Limits {
	if l.limits != nil {
		return l.limits()
	}
	return notify.Limits{Digest: true}
}

// TestChannels: channels of plugins are added to those of the program. One that panics fails its send, and one that
// cannot be used is left out.
func TestChannels(t *testing.T) {
	t.Parallel()
	refused := &notify.Error{}
	well := line{send: func() error { return nil }}
	s, log := start(t,
		with("a", plugin.Parts{Channels: map[string]notify.Channel{"sms": well, "mail": well}}),
		with("b", plugin.Parts{Channels: map[string]notify.Channel{
			"sms":    well,
			"panics": line{send: func() error { panic("oh") }},
			"fails":  line{send: func() error { return refused }},
			"broken": line{limits: func() notify.Limits { panic("oh") }},
			"nil":    nil,
		}}))
	own := map[string]notify.Channel{"mail": well}
	all := s.Channels(own)
	if len(own) != 1 || len(all) != 4 || all["broken"] != nil || all["nil"] != nil {
		t.Errorf("channels: %v", all)
	}
	for name, says := range map[string]string{"mail": "", "sms": "", "panics": "plugin b panicked: oh"} {
		if _, err := all[name].Send(t.Context(), notify.Rendered{}); (err == nil) != (says == "") || err != nil &&
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var kept *notify.Error
	if _, err := all["fails"].Send(t.Context(), notify.Rendered{}); !errors.As(err, &kept) || kept != refused {
		t.Errorf("its error: %v", err)
	}
	if !all["sms"].Limits().Digest {
		t.Error("the limits are lost")
	}
	for _, want := range []string{"plugin=a channel=mail", "plugin=b channel=sms", "plugin=b channel=broken",
		"plugin=b channel=nil", "a channel of a plugin panicked"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log)
		}
	}
}
