package notify

import (
	"fmt"
	"maps"
	"slices"
)

// offer is what messages can be sent to and made of. Reload replaces it whole.
type offer struct {
	channels  map[string]Channel
	templates map[string]parsedTemplate
	texts     map[string]MessageTemplate // of the templates, for who queues elsewhere
	counts    map[string]*counts         // by channel
}

// newOffer reads the channels and templates of options. A channel goes on counting where one of its name did before.
func newOffer(o Options, before *offer) (*offer, error) {
	next := &offer{channels: o.Channels, templates: map[string]parsedTemplate{}, texts: o.Templates,
		counts: map[string]*counts{}}
	for name := range o.Channels {
		next.counts[name] = &counts{}
		if before != nil && before.counts[name] != nil {
			next.counts[name] = before.counts[name]
		}
	}
	for name, t := range o.Templates {
		parsed, err := t.parse()
		if err == nil {
			err = checkTemplate(o.Topic, name, t)
		}
		if err != nil {
			return nil, fmt.Errorf("template %.80q: %w", name, err)
		}
		next.templates[name] = parsed
	}
	return next, nil
}

// Reload takes over Channels and Templates of other options, for what is sent from now on; the other options stay as
// they are. What is wrong changes nothing. What is queued for a channel that is gone fails with INVALID_CONFIG.
func (h *Hub) Reload(o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	h.reloading.Lock()
	defer h.reloading.Unlock()
	before := h.offer.Load()
	next, err := newOffer(o, before)
	if err != nil {
		return err
	}
	h.replaced = slices.AppendSeq(h.replaced, maps.Values(before.channels))
	h.offer.Store(next)
	return nil
}
