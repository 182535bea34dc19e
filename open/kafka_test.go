package open_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/open"
)

func TestKafkaURLs(t *testing.T) {
	t.Parallel()
	const password = canary + "@:/?"
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", password),
		kfake.Superuser("SCRAM-SHA-512", "me", password))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	host := c.ListenAddrs()[0]
	who := url.UserPassword("me", password).String()
	for _, raw := range []string{
		"kafka://" + who + "@" + host,
		"kafka://" + who + "@" + host + "," + host +
			"/?sasl=plain&partitions=2&internal_partitions=1&replicas=1&namespace=a.&foreign=reject" +
			"&session=10s&max_body=64&client_id=me&rack=r1&transactions=true",
	} {
		b, err := open.URL(t.Context(), raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ferry.Publish(t.Context(), b, "orders", 1); err != nil {
			t.Errorf("publish: %v", err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	_, err = open.URL(t.Context(), "kafka://me:"+canary+"-wrong@"+host)
	if err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("a wrong password: %v", err)
	}
}
