package driver

import (
	"cmp"
	"fmt"
	"strings"
)

// setting is one of a configuration, in words.
type setting struct {
	text string
	sign int // 0: it is not set
}

// settings returns all of a configuration but ExpiredDead, set or not.
func (c TopicConfig) settings() []setting {
	return []setting{
		{fmt.Sprintf("max messages %d", c.MaxMessages), cmp.Compare(c.MaxMessages, 0)},
		{fmt.Sprintf("max bytes %d", c.MaxBytes), cmp.Compare(c.MaxBytes, 0)},
		{fmt.Sprintf("keep %v", c.Keep), cmp.Compare(c.Keep, 0)},
		{fmt.Sprintf("keep most %d", c.KeepMost), cmp.Compare(c.KeepMost, 0)},
		{fmt.Sprintf("partitions %d", c.Partitions), cmp.Compare(c.Partitions, 0)},
	}
}

// String tells what is set: "max messages 1000, keep 24h0m0s"; "defaults" where nothing is.
func (c TopicConfig) String() string {
	var set []string
	for _, s := range c.settings() {
		if s.sign != 0 {
			set = append(set, s.text)
		}
	}
	if c.ExpiredDead {
		set = append(set, "expired dead")
	}
	return cmp.Or(strings.Join(set, ", "), "defaults")
}
