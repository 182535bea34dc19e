package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse reads a schedule, and refuses what the actions do not know.
func Parse(text string, actions Actions) ([]Clause, error) {
	var clauses []Clause
	for _, sentence := range strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		sentence = strings.TrimSpace(sentence)
		if sentence == "" || strings.HasPrefix(sentence, "#") {
			continue
		}
		c, err := parseClause(sentence, actions)
		if err != nil {
			return nil, fmt.Errorf("in %q: %w", sentence, err)
		}
		clauses = append(clauses, c)
	}
	return clauses, nil
}

// LacksError means that the broker under test has no such action, or nobody it could be done to.
type LacksError struct {
	What string // that is missing
	text string
}

// Error says what there is instead.
func (e *LacksError) Error() string { return e.text }

// words is a clause being read.
type words []string

func (w *words) next() string {
	if len(*w) == 0 {
		return ""
	}
	first := (*w)[0]
	*w = (*w)[1:]
	return first
}

// accept takes the next word if it is this one.
func (w *words) accept(word string) bool {
	if len(*w) == 0 || (*w)[0] != word {
		return false
	}
	w.next()
	return true
}

func (w *words) duration(after string) (time.Duration, error) {
	word := w.next()
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q needs a duration such as 2s or 500ms, not %q", after, word)
	}
	return d, nil
}

func parseClause(sentence string, actions Actions) (Clause, error) {
	c := Clause{Text: sentence, Which: All}
	w := words(strings.Fields(sentence))
	for _, part := range []func(*words, *Clause, Actions) error{parseTime, parseAction, parseVictim, parseRest} {
		if err := part(&w, &c, actions); err != nil {
			return c, err
		}
	}
	return c, check(c, actions[c.Action])
}

func parseTime(w *words, c *Clause, _ Actions) (err error) {
	switch {
	case w.accept("at"):
		c.From, err = w.duration("at")
		return err
	case w.accept("every"):
	default:
		return fmt.Errorf(`it must begin with "at" or "every"`)
	}
	least, most, ranged := strings.Cut(w.next(), "-")
	if c.Every, err = time.ParseDuration(least); err != nil || c.Every <= 0 {
		return fmt.Errorf(`"every" needs a duration such as 5s, or a range such as 1s-3s`)
	}
	if ranged {
		if c.EveryMax, err = time.ParseDuration(most); err != nil || c.EveryMax < c.Every {
			return fmt.Errorf("%s-%s is no range of durations", least, most)
		}
	}
	c.From = c.Every
	if w.accept("from") {
		if c.From, err = w.duration("from"); err != nil {
			return err
		}
	}
	if w.accept("until") {
		c.Until, err = w.duration("until")
	}
	return err
}

func parseAction(w *words, c *Clause, actions Actions) error {
	c.Action = w.next()
	if _, ok := actions[c.Action]; !ok {
		return &LacksError{fmt.Sprintf("action %q", c.Action), fmt.Sprintf("unknown action %q; there are:\n%s", c.Action,
			actions)}
	}
	return nil
}

func parseVictim(w *words, c *Clause, actions Actions) error {
	roles := actions[c.Action].Roles
	if len(roles) == 0 {
		return nil
	}
	c.Role = w.next()
	if !slices.Contains(roles, c.Role) {
		return &LacksError{fmt.Sprintf("%q to %s", c.Role, c.Action),
			fmt.Sprintf("%s what? One of %s, not %q", c.Action, strings.Join(roles, ", "), c.Role)}
	}
	switch which := w.next(); which {
	case "any":
		c.Which = Any
	case "all":
		c.Which = All
	default:
		n, err := strconv.Atoi(which)
		if err != nil || n < 1 {
			return fmt.Errorf("which %s? A number from 1, any, or all, not %q", c.Role, which)
		}
		c.Which = n
	}
	return nil
}

func parseRest(w *words, c *Clause, _ Actions) (err error) {
	for len(*w) > 0 {
		switch {
		case w.accept("for"):
			if c.For, err = w.duration("for"); err != nil {
				return err
			}
		case w.accept("with"):
			c.With = w.next()
		default:
			return fmt.Errorf(`what is %q? After the victim come "with VALUE" and "for DURATION"`, strings.Join(*w, " "))
		}
	}
	return nil
}

// check compares what was said with what the action takes.
func check(c Clause, a Action) error {
	switch {
	case a.Lasting && c.For == 0:
		return fmt.Errorf(`%s needs "for" and a duration`, c.Action)
	case !a.Lasting && c.For > 0:
		return fmt.Errorf(`%s is over at once: leave out "for"`, c.Action)
	case a.Value != "" && c.With == "":
		return fmt.Errorf(`%s needs "with" and %s`, c.Action, a.Value)
	case a.Value == "" && c.With != "":
		return fmt.Errorf(`%s takes no "with"`, c.Action)
	case c.Until > 0 && c.Until <= c.From:
		return fmt.Errorf("it is over at %v before it begins at %v", c.Until, c.From)
	}
	return nil
}
