package gateway

import "testing"

// BenchmarkLease makes the handle of a delivery and reads it again, as for each message that a client receives and
// settles. It pays for the pool of signers.
func BenchmarkLease(b *testing.B) {
	l := newLeases("node")
	b.ReportAllocs()
	for b.Loop() {
		if h := l.parse(l.handle("session", 12345)); h.err != nil {
			b.Fatal(h.err)
		}
	}
}
