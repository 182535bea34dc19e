package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// ruleSet is what a watch evaluates: the rules of its options, and over them those that are kept in the broker.
type ruleSet struct {
	all  []*compiled
	kept map[string]bool // names of those that are kept in the broker
	// version changes whenever the rules in the broker do, and settings whenever those of the options do.
	version  string
	settings *settings
}

func (s *ruleSet) find(name string) *compiled {
	for _, r := range s.all {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// KeptRule is a rule, and whether it is kept in the broker: otherwise it is one of the options.
type KeptRule struct {
	Rule
	Kept bool `json:"kept"`
}

func ruleName(name string) string { return "rule/" + name }

// Rules are all that the watch evaluates.
func (w *Watch) Rules(ctx context.Context) ([]KeptRule, error) {
	s, err := w.refresh(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]KeptRule, len(s.all))
	for i, r := range s.all {
		found[i] = KeptRule{r.Rule, s.kept[r.Name]}
	}
	return found, nil
}

// PutRule keeps a rule in the broker, for all processes that run a watch, from their next look on. It counts more than
// one of the options of the same name.
func (w *Watch) PutRule(ctx context.Context, r Rule) error {
	if _, err := w.compileKept(r); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return w.broker.Driver().KV().Apply(ctx, bucket, driver.KVOptions{}, driver.Write{Name: ruleName(r.Name),
		Data: data})[0].Err
}

// DeleteRule removes a rule from the broker. One of the options of the same name counts again; otherwise its alerts are
// over with the next look, and who was told of one is told so. ErrNotFound: none of this name is kept.
func (w *Watch) DeleteRule(ctx context.Context, name string) error {
	kv := w.broker.Driver().KV()
	values, err := kv.Get(ctx, bucket, ruleName(name))
	if err != nil {
		return err
	}
	if values[0].Revision == 0 {
		return driver.NewError(ferry.ErrNotFound, fmt.Sprintf("no rule %.80q is kept in the broker", name),
			"rules of a configuration are changed there, or replaced by one of the same name", nil)
	}
	return kv.Apply(ctx, bucket, driver.KVOptions{}, driver.Write{Name: ruleName(name), Delete: true})[0].Err
}

// compileKept checks a rule by itself, and that somebody is told.
func (w *Watch) compileKept(r Rule) (*compiled, error) {
	c, err := r.compile()
	if err != nil {
		return nil, err
	}
	return c, w.settings.Load().reachable(w.o.Hub, c)
}

// refresh reads the rules that are kept in the broker, and compiles them if they changed. One that cannot be used here
// is left out, and the log says why.
func (w *Watch) refresh(ctx context.Context) (*ruleSet, error) {
	var values []driver.Value
	var version strings.Builder
	err := list(ctx, w.broker.Driver().KV(), bucket, "rule/", all, func(v driver.Value) error {
		values = append(values, v)
		fmt.Fprintf(&version, "%s %d\n", v.Name, v.Revision)
		return nil
	})
	if err != nil {
		return nil, err
	}
	settings := w.settings.Load()
	if now := w.rules.Load(); now.version == version.String() && now.settings == settings {
		return now, nil
	}
	next := &ruleSet{kept: map[string]bool{}, version: version.String(), settings: settings}
	var kept []*compiled
	for _, v := range values {
		c, err := w.decodeRule(v)
		if err != nil {
			w.log.ErrorContext(ctx, "a rule that is kept in the broker is not evaluated", "name", v.Name, "error", err)
			continue
		}
		kept = append(kept, c)
		next.kept[c.Name] = true
	}
	next.all = slices.DeleteFunc(slices.Clone(settings.rules), func(c *compiled) bool { return next.kept[c.Name] })
	next.all = append(next.all, kept...)
	w.rules.Store(next)
	return next, nil
}

func (w *Watch) decodeRule(v driver.Value) (*compiled, error) {
	var r Rule
	if err := json.Unmarshal(v.Data, &r); err != nil {
		return nil, err
	}
	if ruleName(r.Name) != v.Name {
		return nil, errors.New("its name is another one")
	}
	return w.compileKept(r)
}
