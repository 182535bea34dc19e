package ferry_test

import (
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
)

// BenchmarkCodec measures a typed publish and a decode with the default codec.
func BenchmarkCodec(b *testing.B) {
	type line struct {
		Name string `json:"name"`
		N    int    `json:"n"`
	}
	d := &sink{Driver: newMemory(b, memory.Options{}), local: true}
	broker := newBroker(b, d, ferry.Options{})
	b.Run("publish", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ferry.Publish(b.Context(), broker, "orders", line{"tea", 3}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		delivery := &ferry.Delivery{Message: &ferry.Message{Topic: "orders", ContentType: "application/json",
			Body: []byte(`{"name":"tea","n":3}`)}}
		for b.Loop() {
			if _, err := ferry.Decode[line](b.Context(), broker, delivery); err != nil {
				b.Fatal(err)
			}
		}
	})
}
