package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/outbox"
)

// BenchmarkRelay tells how many rows of 200 bytes a second go through, of as many keys.
//
//	go test ./outbox -run '^$' -bench Relay -benchtime 50000x
func BenchmarkRelay(b *testing.B) {
	for _, keys := range []int{1, 100, 1_000_000} {
		for name, of := range map[string]func(testing.TB) database{"sqlite": sqlite, "postgresql": postgres} {
			for _, to := range []string{"memory", "redis"} {
				b.Run(fmt.Sprintf("%s/%s/keys=%d", name, to, keys), func(b *testing.B) {
					url := "memory://"
					if to == "redis" {
						url = redistest.Shared(b).URL() + "?prefix=" + fmt.Sprintf("b%d", b.N) + name + fmt.Sprint(keys)
					}
					relayAll(b, url, of(b), keys)
				})
			}
		}
	}
}

func relayAll(b *testing.B, url string, d database, keys int) {
	to, err := open.URL(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer to.Close(b.Context())
	db, body := d.open(b), make([]byte, 200)
	for from := 0; from < b.N; from += 1000 {
		var ms []*ferry.Message
		for i := range min(1000, b.N-from) {
			ms = append(ms, &ferry.Message{Topic: "a", Key: fmt.Sprint((from + i) % keys), Body: body})
		}
		insert(b, db, ms...)
	}
	b.ResetTimer()
	_, stop := run(b, to, d, outbox.Options{})
	for left := 1; left > 0; { // asked seldom and cheaply
		time.Sleep(20 * time.Millisecond)
		if err := db.QueryRowContext(b.Context(),
			"SELECT count(*) FROM (SELECT 1 FROM ferry_outbox LIMIT 1) AS one").Scan(&left); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	stop()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
