package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/privatefile"
)

// contexts are the brokers that have names, as they lie in the file.
type contexts struct {
	file     string
	Current  string            `json:"current"`
	Contexts map[string]string `json:"contexts"` // URLs
}

// contextsFile returns where contexts lie, or nothing where there is no place for them.
func (p process) contextsFile() string {
	for _, place := range [...][2]string{{"XDG_CONFIG_HOME", ""}, {"APPDATA", ""}, {"HOME", ".config"}} {
		if dir, _ := p.env(place[0]); dir != "" {
			return filepath.Join(dir, place[1], "ferry", "contexts.json")
		}
	}
	return ""
}

// readContexts reads the file. One that is not there has none.
func (p process) readContexts() (*contexts, error) {
	all := &contexts{file: p.contextsFile(), Contexts: map[string]string{}}
	if all.file == "" {
		return all, nil
	}
	text, err := privatefile.ReadSecret(all.file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), all)
	}
	if err != nil {
		return nil, usage(fmt.Sprintf("the contexts in %s cannot be read: %v", all.file, err),
			"mend or remove the file")
	}
	return all, nil
}

// currentBroker returns the URL of the context that is in use, or nothing.
func (p process) currentBroker() (string, error) {
	all, err := p.readContexts()
	if err != nil {
		return "", err
	}
	return all.Contexts[all.Current], nil
}

// set remembers a broker and uses it. The token of a server goes into a file of its own, which the URL names.
func (c *contexts) set(name, broker, token string) error {
	if strings.HasPrefix(broker, "ferry") && token != "" {
		file := c.tokenFile(name)
		if err := writePrivate(file, []byte(token)); err != nil {
			return err
		}
		u, err := url.Parse(broker)
		if err != nil {
			return usage("the URL of the broker cannot be read", brokerHint)
		}
		q := u.Query()
		q.Set("token_file", file)
		u.RawQuery = q.Encode()
		broker = u.String()
	}
	if c.Contexts == nil {
		c.Contexts = map[string]string{}
	}
	c.Contexts[name] = broker
	c.Current = name
	return nil
}

func (c *contexts) tokenFile(name string) string {
	return filepath.Join(filepath.Dir(c.file), "tokens", name)
}

func (c *contexts) use(name string) error {
	if _, ok := c.Contexts[name]; !ok {
		return driver.NewError(driver.ErrNotFound, fmt.Sprintf("there is no context %.80q", name),
			"list them: ferry ctx ls", nil)
	}
	c.Current = name
	return nil
}

func (c *contexts) remove(name string) error {
	current := c.Current
	if err := c.use(name); err != nil {
		return err
	}
	delete(c.Contexts, name)
	if c.Current = current; current == name {
		c.Current = ""
	}
	if err := os.Remove(c.tokenFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// write replaces the file.
func (c *contexts) write() error {
	if c.file == "" {
		return usage("there is no directory for contexts", "set HOME or XDG_CONFIG_HOME")
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return writePrivate(c.file, text)
}

// writePrivate replaces a file that only its owner may read, in one step: who is interrupted leaves the old one.
func writePrivate(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), privatefile.DirMode); err != nil {
		return err
	}
	half, err := os.CreateTemp(filepath.Dir(file), ".half-*") // which is private
	if err != nil {
		return err
	}
	_, err = half.Write(text)
	if err = errors.Join(err, half.Sync(), half.Close()); err == nil {
		err = os.Rename(half.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(half.Name()))
	}
	return nil
}
