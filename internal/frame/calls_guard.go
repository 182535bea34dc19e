package frame

// CallGuard is a method of the guard store behind a gateway.
const CallGuard = "guard"

// Guard is CallGuard. What the method takes and returns is guard/remote's own.
type Guard struct {
	Method string
	Data   []byte
}

// Walk writes or reads it.
func (x *Guard) Walk(w *Walk) {
	text(w, &x.Method)
	w.bytes(&x.Data)
}

// Bytes are the answer to CallGuard.
type Bytes []byte

// Walk writes or reads them.
func (x *Bytes) Walk(w *Walk) { w.bytes((*[]byte)(x)) }
