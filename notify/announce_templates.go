package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// templatesAtOnce is how many templates are announced in one call: each may be a whole value of the broker.
const templatesAtOnce = 16

// templateValues are the values of the templates of hubs of one topic. Every hub writes them, and one that no hub has
// any more is gone with its TTL.
func templateValues(topic string) (bucket, prefix string) {
	topic = cmp.Or(topic, DefaultTopic)
	return bucketOf(topic), "template/" + topic + "/"
}

// checkTemplate refuses a template that cannot be announced.
func checkTemplate(topic, name string, t MessageTemplate) error {
	bucket, prefix := templateValues(topic)
	if name == "" {
		return invalid("name it", "it has no name")
	}
	if err := driver.CheckValueNames(bucket, prefix+name); err != nil {
		return err
	}
	if size := len(t.Title) + len(t.Body); size > driver.MaxValue/8 { // a character has at most six in JSON
		return invalid("a notification has at most 4096 characters", "it has %d bytes", size)
	}
	return nil
}

// templateWrites announce the templates, in order of their names.
func (h *Hub) templateWrites() (ws []driver.Write) {
	_, prefix := templateValues(h.o.Topic)
	texts := h.offer.Load().texts
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		data, err := json.Marshal(texts[name])
		if err != nil { // texts can be written
			continue
		}
		ws = append(ws, driver.Write{Name: prefix + name, Data: data, TTL: announcedFor, Quiet: true})
	}
	return ws
}

// announcedTemplates are those of all hubs that run on a topic, by name.
func announcedTemplates(ctx context.Context, b *ferry.Broker, topic string) (map[string]MessageTemplate, error) {
	bucket, prefix := templateValues(topic)
	found := map[string]MessageTemplate{}
	q := driver.KVQuery{Bucket: bucket, Prefix: prefix, Limit: driver.MaxLimit}
	for {
		page, err := b.Driver().KV().List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, v := range page.Values {
			var t MessageTemplate
			if err := json.Unmarshal(v.Data, &t); err != nil {
				return nil, driver.NewError(ferry.ErrInvalid, "the template "+v.Name+" cannot be read",
					"see who else writes it", err)
			}
			found[strings.TrimPrefix(v.Name, prefix)] = t
		}
		if q.After = page.Next; q.After == "" {
			return found, nil
		}
	}
}
