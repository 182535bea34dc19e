package frame

import "github.com/ferrymq/ferry/driver"

// Names is CallKVGet.
type Names struct {
	Bucket string
	Names  []string
}

// Walk writes or reads it.
func (x *Names) Walk(w *Walk) {
	text(w, &x.Bucket)
	list(w, &x.Names, text[string])
}

// KVQuery is CallKVList.
type KVQuery driver.KVQuery

// Walk writes or reads it.
func (x *KVQuery) Walk(w *Walk) {
	text(w, &x.Bucket)
	text(w, &x.Prefix)
	text(w, &x.After)
	number(w, &x.Limit)
}

// Writes is CallKVApply.
type Writes struct {
	Bucket  string
	Options driver.KVOptions
	Writes  []driver.Write
}

// Walk writes or reads it.
func (x *Writes) Walk(w *Walk) {
	text(w, &x.Bucket)
	count(w, &x.Options.Level)
	list(w, &x.Writes, write)
}

// WriteResults are the answer to CallKVApply.
type WriteResults []driver.WriteResult

// Walk writes or reads them.
func (x *WriteResults) Walk(w *Walk) { list(w, (*[]driver.WriteResult)(x), writeResult) }

// Watch is CallKVWait, and without a name CallKVChanges.
type Watch struct {
	Bucket, Name string
	After        uint64
}

// Walk writes or reads it.
func (x *Watch) Walk(w *Walk) {
	text(w, &x.Bucket)
	text(w, &x.Name)
	w.uint(&x.After)
}

// Values are the answer to CallKVGet, CallKVList, CallKVWait and CallKVChanges. Again says that the gateway has waited
// long enough, and that nothing has changed.
type Values struct {
	Values   []driver.Value
	Next     string
	Revision uint64
	Again    bool
}

// Walk writes or reads them.
func (x *Values) Walk(w *Walk) {
	list(w, &x.Values, value)
	text(w, &x.Next)
	w.uint(&x.Revision)
	w.flag(&x.Again)
}
