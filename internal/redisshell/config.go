package redisshell

import (
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// ConfigFields are the configuration of a topic as fields of each of its parts, of which there are so many. A bound is
// divided among them, rounded up.
func ConfigFields(c driver.TopicConfig, parts int) []any {
	return []any{"all_messages", c.MaxMessages, "all_bytes", c.MaxBytes, "max_messages", Share(c.MaxMessages, parts),
		"max_bytes", Share(c.MaxBytes, parts), "expired_dead", redisconn.Flag(c.ExpiredDead), "configured", "1"}
}

// ConfigOf reads what ConfigFields has written.
func ConfigOf(f map[string]string) driver.TopicConfig {
	return driver.TopicConfig{MaxMessages: Whole(f, "all_messages"), MaxBytes: Whole(f, "all_bytes"),
		ExpiredDead: f["expired_dead"] == "1"}
}

// CheckConfig says what is wrong with the configuration of a topic, whose parts are called so.
func CheckConfig(topic string, c driver.TopicConfig, part string) error {
	if err := driver.CheckName("topic", topic); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	if c.Partitions > MostParts {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%d %ss are too many", c.Partitions, part), "use at most 1024",
			nil)
	}
	return nil
}

// ErrConfigured says that a topic exists with another configuration than the one that is asked for.
func ErrConfigured(topic string, is, wanted driver.TopicConfig) error {
	return driver.NewError(driver.ErrConflict,
		fmt.Sprintf("topic %q is configured as %+v, not %+v", topic, is, wanted), "use AlterTopic to change it", nil)
}
