package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ferrymq/ferry/internal/letterjson"
	"github.com/ferrymq/ferry/internal/privatefile"
)

// letterFile is the emergency file while it is written to.
type letterFile interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Stat() (os.FileInfo, error)
	Sync() error
}

func openLetters(name string) (letterFile, error) {
	f, err := privatefile.Open(name, os.O_APPEND|os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("emergency file: %w", err)
	}
	return f, nil
}

// write appends dead letters to the file, in one write that is synced before it returns.
func (m *emergencies) write(letters []unburied) (err error) {
	var text []byte
	for _, u := range letters {
		if text, err = letterjson.Of(u.c.topic, u.entry()).Append(text); err != nil {
			return err
		}
	}
	_, missing := os.Lstat(m.File)
	f, err := m.open(m.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if torn(f) {
		text = append([]byte("\n"), text...)
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if missing == nil {
		return nil
	}
	return syncDirectory(filepath.Dir(m.File))
}

// torn reports whether the file ends in the middle of a line, because a write before was cut off.
func torn(f letterFile) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

// syncDirectory makes a new name in a directory durable. Where directories cannot be synced, the name is as durable as
// it gets.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("emergency file: %w", err)
	}
	_ = d.Sync()
	return d.Close()
}
