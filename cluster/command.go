package cluster

import (
	"fmt"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Action is what a command asks for.
type Action string

// Actions.
const (
	// Quiet stops the handlers of a topic and group from claiming: see worker.Worker.Quiet. Without a group it is every
	// group, without a topic every handler.
	Quiet Action = "quiet"
	// Resume lets them go on.
	Resume Action = "resume"
	// Scale sets how many handlers run at once: see worker.Worker.SetConcurrency.
	Scale Action = "scale"
	// Cancel drops a message that the member holds: see worker.Worker.Cancel.
	Cancel Action = "cancel"
)

// Command is what a member is told to do.
type Command struct {
	Do Action `json:"do"`
	// Worker is the instance of the worker that is meant. Defaults to each that fits; Scale needs it where a member has
	// several.
	Worker string `json:"worker,omitempty"`
	// Topic and Group name handlers. For Cancel Group defaults to "default".
	Topic string `json:"topic,omitempty"`
	Group string `json:"group,omitempty"`
	// ID is that of the message to cancel.
	ID string `json:"id,omitempty"`
	// Concurrency is how many handlers are to run at once.
	Concurrency int `json:"concurrency,omitempty"`
}

// check says what is wrong with a command, and fills in its defaults.
func (c *Command) check() error {
	bad := func(text, hint string) error { return driver.NewError(ferry.ErrInvalid, text, hint, nil) }
	switch c.Do {
	case Quiet, Resume:
		if c.Topic == "" && c.Group != "" {
			return bad("the command names a group and no topic", "name the topic too")
		}
	case Scale:
		if c.Concurrency < 1 {
			return bad(fmt.Sprintf("a concurrency of %d", c.Concurrency), "use 1 or more, or tell the member to be quiet")
		}
	case Cancel:
		if c.Topic == "" || c.ID == "" {
			return bad("the command names no topic or no message", "name both")
		}
		if c.Group == "" {
			c.Group = driver.DefaultGroup
		}
	default:
		return bad(fmt.Sprintf("there is no command %.40q", c.Do), "use quiet, resume, scale or cancel")
	}
	return nil
}
