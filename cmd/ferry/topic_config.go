package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// configFlags are the settings of a topic.
type configFlags struct{ driver.TopicConfig }

func (c *configFlags) add(f *pflag.FlagSet) {
	f.Int64Var(&c.MaxMessages, "max-messages", 0, "refuse publishes beyond this many unsettled messages; 0: no bound")
	f.Int64Var(&c.MaxBytes, "max-bytes", 0, "refuse publishes beyond this many bytes of unsettled messages; 0: no bound")
	f.DurationVar(&c.Keep, "keep", 0, "keep settled messages this long, 24h for example; 0: not at all")
	f.Int64Var(&c.KeepMost, "keep-most", 0, "of those keep at most this many, the newest; 0: no bound")
	f.BoolVar(&c.ExpiredDead, "expired-dead", false,
		"send expired messages to the dead letters instead of discarding them")
	f.IntVar(&c.Partitions, "partitions", 0, "partitions or shards, where the broker has them; 0: its default")
	onlyOnCommandLine(f, "max-messages", "max-bytes", "keep", "keep-most", "expired-dead", "partitions")
}

// change returns old with the settings that are on the command line.
func (c configFlags) change(f *pflag.FlagSet, old driver.TopicConfig) driver.TopicConfig {
	for name, set := range map[string]func(){
		"max-messages": func() { old.MaxMessages = c.MaxMessages },
		"max-bytes":    func() { old.MaxBytes = c.MaxBytes },
		"keep":         func() { old.Keep = c.Keep },
		"keep-most":    func() { old.KeepMost = c.KeepMost },
		"expired-dead": func() { old.ExpiredDead = c.ExpiredDead },
		"partitions":   func() { old.Partitions = c.Partitions },
	} {
		if f.Changed(name) {
			set()
		}
	}
	return old
}

// fits says why a broker cannot do what the flags ask for, or nil. Those inside one process take a number of
// partitions, for programs that run on others too, and make nothing of it.
func (c configFlags) fits(caps driver.Capabilities) error {
	if c.Partitions > 0 && (caps.Driver == "memory" || caps.Driver == "disk") {
		return driver.NewError(driver.ErrUnsupported, caps.Driver+" has no partitions",
			"leave --partitions out: consumers share a topic there without them", nil)
	}
	return nil
}

func newTopicCreate(p process) *cobra.Command {
	c := &cobra.Command{Use: "create TOPIC", Short: "Create a topic with these settings",
		Long: "Creates a topic. One that exists with the same settings is fine, one with others is refused; one " +
			"that\nexists only because something was published takes them on. It answers \"created\" or \"configured\".",
		Example: "  ferry topic create orders\n  ferry topic create orders --max-messages 1000000 --keep 24h --expired-dead"}
	r := newRemote(p, c)
	var config configFlags
	config.add(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := driver.CheckTopic(args[0]); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			if err := config.fits(s.driver.Capabilities()); err != nil {
				return err
			}
			_, err := configOf(c.Context(), s.driver, args[0])
			if err != nil && !errors.Is(err, driver.ErrNotFound) {
				return err
			}
			result := "created"
			if err == nil {
				result = "configured"
			}
			err = s.driver.EnsureTopic(c.Context(), args[0], config.TopicConfig)
			if errors.Is(err, driver.ErrConflict) {
				return hinted(err, "'ferry topic alter "+args[0]+"' changes settings, 'ferry topic show "+args[0]+"' shows them")
			}
			if err != nil {
				return err
			}
			return r.did(change{Topic: args[0], Result: result})
		})
	}
	return c
}

func newTopicAlter(p process) *cobra.Command {
	c := &cobra.Command{Use: "alter TOPIC", Short: "Change some settings of a topic, and keep the others",
		Example: "  ferry topic alter orders --keep 48h"}
	r := newRemote(p, c)
	var config configFlags
	config.add(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if !changesAny(c.Flags(), "max-messages", "max-bytes", "keep", "keep-most", "expired-dead", "partitions") {
			return usage("there is nothing to change", seeHelp(c))
		}
		return r.with(c.Context(), func(s session) error {
			if err := config.fits(s.driver.Capabilities()); err != nil {
				return err
			}
			old, err := configOf(c.Context(), s.driver, args[0])
			if err != nil {
				return err
			}
			if err := s.driver.AlterTopic(c.Context(), args[0], config.change(c.Flags(), old)); err != nil {
				return err
			}
			return r.did(change{Topic: args[0], Result: "altered"})
		})
	}
	return c
}

func changesAny(f *pflag.FlagSet, names ...string) bool {
	for _, name := range names {
		if f.Changed(name) {
			return true
		}
	}
	return false
}

// configView is the JSON form of a topic's settings.
type configView struct {
	MaxMessages int64             `json:"max_messages"`
	MaxBytes    int64             `json:"max_bytes"`
	Keep        jsontime.Duration `json:"keep"`
	KeepMost    int64             `json:"keep_most,omitempty"`
	ExpiredDead bool              `json:"expired_dead"`
	Partitions  int               `json:"partitions"`
}

func viewConfig(c driver.TopicConfig) *configView {
	return &configView{c.MaxMessages, c.MaxBytes, jsontime.Duration(c.Keep), c.KeepMost, c.ExpiredDead, c.Partitions}
}
