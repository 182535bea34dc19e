package deadletter_test

import (
	"bytes"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/encrypt"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// locked returns a broker on the same messages with a key of its own, and the queue of its letters.
func (k *kit) locked(id string) (*ferry.Broker, *deadletter.Queue) {
	k.Helper()
	f, err := encrypt.New(encrypt.Options{Keys: encrypt.KeyRing{Active: encrypt.Key{ID: id,
		Secret: bytes.Repeat([]byte(id), 32)}}})
	k.ok(err)
	b, err := ferry.New(k.d, ferry.Options{Filters: []codec.Filter{f}})
	k.ok(err)
	q, err := deadletter.New(b)
	k.ok(err)
	return b, q
}

// opened receives n messages of a topic, which are stored encrypted, and returns their bodies as b undoes them.
func (k *kit) opened(b *ferry.Broker, topic string, n int) string {
	k.Helper()
	var all []string
	k.take(topic, driver.DefaultGroup, n, func(d *driver.Delivery) driver.Settlement {
		m, err := b.UndoFilters(k.ctx(), d.Message)
		k.ok(err)
		if m == d.Message {
			k.Errorf("%s: stored as it is: %q", topic, d.Body)
		}
		all = append(all, string(m.Body))
		return driver.Settlement{Outcome: driver.Ack}
	})
	return strings.Join(all, " ")
}

// filteredLetters: who has the key sees letters as they were published, and asks for what is in them; whatever gets
// another body, key, id or topic is encrypted anew. Who has not brings them back as they are, and nothing else.
func filteredLetters(k *kit) {
	b, queue := k.locked("1")
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		_, err := ferry.Publish(k.ctx(), b, topic, map[string]string{"n": id}, ferry.ID(id), ferry.Key("k"))
		k.ok(err)
	}
	k.bury(5, slow)
	one := func(q *deadletter.Queue, id string, r deadletter.ReplayOptions) deadletter.Report {
		k.Helper()
		r.Selection = deadletter.Selection{Topic: topic, Where: k.where(`id == "` + id + `"`)}
		report, err := q.Replay(k.ctx(), r)
		k.ok(err)
		return report
	}
	l, err := queue.Get(k.ctx(), driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: "1"})
	k.ok(err)
	if string(l.Body) != `{"n":"1"}` || l.Headers != nil {
		k.Errorf("with the key: %q, %v", l.Body, l.Headers)
	}
	page, err := queue.Browse(k.ctx(),
		deadletter.Query{Selection: deadletter.Selection{Where: k.where(`json.n == "2"`)}})
	k.ok(err)
	if len(page.Letters) != 1 || page.Letters[0].ID != "2" {
		k.Errorf("asked for what is in it: %v", page.Letters)
	}

	for name, without := range map[string]deadletter.ReplayOptions{
		"another body":  {Edit: deadletter.SetBody([]byte("plain"), "")},
		"another topic": {To: "moved"},
	} {
		if got := one(k.queue, "1", without); got.Done != 0 || got.Skipped != 1 {
			k.Errorf("%s without the key: %+v", name, got)
		}
	}
	if got := one(k.queue, "1", deadletter.ReplayOptions{}); got.Done != 1 { // needs no key
		k.Errorf("as it is: %+v", got)
	}
	if got := one(queue, "2", deadletter.ReplayOptions{Edit: func(_ deadletter.Letter, m *ferry.Message) error {
		m.Body, m.Key = []byte("edited "+string(m.Body)), "k" // bound to the key
		return nil
	}}); got.Done != 1 {
		k.Errorf("edited: %+v", got)
	}
	if got := k.opened(b, topic, 2); got != `{"n":"1"} edited {"n":"2"}` {
		k.Errorf("came back: %s", got)
	}
	if got := one(queue, "3", deadletter.ReplayOptions{To: "moved"}); got.Done != 1 {
		k.Errorf("to another topic: %+v", got)
	}
	if got := k.opened(b, "moved", 1); got != `{"n":"3"}` {
		k.Errorf("moved: %s", got)
	}
	k.exportFiltered(b, queue)
}

// exportFiltered: an export of who has the key is readable, one of who has not is as stored, and either is imported by
// who has it.
func (k *kit) exportFiltered(b *ferry.Broker, queue *deadletter.Queue) {
	for id, from := range map[string]*deadletter.Queue{"4": queue, "5": k.queue} {
		var out bytes.Buffer
		_, err := from.Export(k.ctx(), &out, deadletter.Selection{Topic: topic, Where: k.where(`id == "` + id + `"`)},
			deadletter.NDJSON)
		k.ok(err)
		if readable := strings.Contains(out.String(), `\"n\"`); readable != (from == queue) {
			k.Errorf("export of letter %s: %s", id, &out)
		}
		to := deadletter.ImportOptions{To: "imported"}
		if from == k.queue {
			if _, err := k.queue.Import(k.ctx(), bytes.NewReader(out.Bytes()), to); err == nil ||
				!strings.Contains(err.Error(), "no filter here") {
				k.Errorf("import without the key: %v", err)
			}
		}
		k.remove(id)
		got, err := queue.Import(k.ctx(), bytes.NewReader(out.Bytes()), to)
		k.ok(err)
		if got.Published != 1 {
			k.Errorf("import of letter %s: %+v", id, got)
		}
		if got := k.opened(b, "imported", 1); got != `{"n":"`+id+`"}` {
			k.Errorf("imported: %s", got)
		}
	}
}

// remove deletes a dead letter.
func (k *kit) remove(id string) {
	k.Helper()
	for _, err := range k.d.Delete(k.ctx(), []driver.Target{{Topic: topic, Group: driver.DefaultGroup, ID: id}}) {
		k.ok(err)
	}
}

// filteredParseErrors: what could not be decoded is encrypted when it is mended.
func filteredParseErrors(k *kit) {
	b, queue := k.locked("1")
	k.planted = true
	k.publish(&driver.Message{ID: "first"})
	k.ok(k.plant(topic, "rubbish"))
	for _, key := range []string{"a", "b", "c", "d"} { // in every partition
		k.publish(&driver.Message{ID: "behind " + key, Key: key})
	}
	k.bodies(topic, 5)
	sel := deadletter.Selection{Topic: topic, State: deadletter.StateInvalid}
	report, err := queue.Replay(k.ctx(),
		deadletter.ReplayOptions{Selection: sel, Edit: deadletter.SetBody([]byte("mended"), "")})
	k.ok(err)
	if report.Done != 1 {
		k.Fatalf("%+v", report)
	}
	if got := k.opened(b, topic, 1); got != "mended" {
		k.Errorf("mended: %s", got)
	}
}
