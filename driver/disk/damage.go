package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"

	"github.com/ferrymq/ferry/driver"
)

// Every write carries its number, and the number of the newest write that was known to be synced. Pebble ends reading
// its log at the first record that is damaged, because that is what an unfinished write looks like. If a later record
// says that more was synced than can be read, it was not unfinished: it was damaged, and must not be cut off silently.

var (
	markKey   = []byte{0, 0, 0, 0, 'w'} // where the engine keeps nothing
	markMagic = []byte("ferry/written\x00")
)

const markSize = 8 + 8 + 4 // behind the magic

// appendMark appends the mark of a write.
func appendMark(dst []byte, number, synced uint64) []byte {
	at := len(dst)
	dst = append(dst, markMagic...)
	dst = binary.BigEndian.AppendUint64(dst, number)
	dst = binary.BigEndian.AppendUint64(dst, synced)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
}

// marks returns the highest number, and the highest synced number, of the marks anywhere in data.
func marks(data []byte) (number, synced uint64) {
	for {
		i := bytes.Index(data, markMagic)
		if i < 0 || len(data) < i+len(markMagic)+markSize {
			return number, synced
		}
		end := i + len(markMagic) + markSize
		if sum := binary.BigEndian.Uint32(data[end-4 : end]); sum == crc32.ChecksumIEEE(data[i:end-4]) {
			at := i + len(markMagic)
			number, synced = max(number, binary.BigEndian.Uint64(data[at:])), max(synced, binary.BigEndian.Uint64(data[at+8:]))
		}
		data = data[i+len(markMagic):]
	}
}

// readLogs returns up to which number writes can be read from the logs, and up to which they were synced.
func (s *store) readLogs(dir string) (readable, synced uint64, err error) {
	names, err := s.fs.List(dir)
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		base, ok := strings.CutSuffix(name, ".log")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(base, "-")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			continue
		}
		r, y, err := s.readLog(s.fs.PathJoin(dir, name), n)
		if err != nil {
			return 0, 0, err
		}
		readable, synced = max(readable, r), max(synced, y)
	}
	return readable, synced, nil
}

func (s *store) readLog(name string, number uint64) (readable, synced uint64, err error) {
	f, err := s.fs.Open(name)
	if err != nil {
		return 0, 0, err
	}
	var data, write bytes.Buffer
	if info, err := f.Stat(); err == nil {
		data.Grow(int(info.Size()) + bytes.MinRead)
	}
	_, err = data.ReadFrom(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, 0, err
	}
	_, synced = marks(data.Bytes())
	for r := openLog(record.NewReader, &data, number); ; {
		next, err := r.Next()
		if err != nil {
			return readable, synced, nil // the end, or damage: which, is asked later
		}
		write.Reset()
		if _, err := write.ReadFrom(next); err != nil {
			return readable, synced, nil
		}
		n, _ := marks(write.Bytes())
		readable = max(readable, n)
	}
}

// openLog calls record.NewReader, whose number has a type that only Pebble can name.
func openLog[N ~uint64](open func(io.Reader, N) *record.Reader, log io.Reader, number uint64) *record.Reader {
	return open(log, N(number))
}

// refuseDamage says whether writes that were synced can no longer be read. Nothing is changed.
func (s *store) refuseDamage(dir *directory) error {
	readable, synced, err := s.readLogs(dir.data)
	if err != nil || synced <= readable {
		return err
	}
	// What is not in a log may be in a table already; a log that is used again still contains old writes.
	db, err := s.log.open(dir.data, s.options(true))
	if err != nil {
		return err
	}
	stored, err := storedMark(db)
	if err := errors.Join(err, db.Close()); err != nil || synced <= stored {
		return err
	}
	return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the log in %s is damaged: writes up to number %d were "+
		"synced, but only those up to %d can be read", dir.data, synced, stored),
		"restore the directory from a backup; nothing was changed. To go on without what cannot be read, copy the "+
			"directory and remove its .log files", nil)
}

// storedMark returns the number of the newest write in the store.
func storedMark(db *pebble.DB) (uint64, error) {
	value, closer, err := db.Get(markKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, _ := marks(value)
	return n, closer.Close()
}
