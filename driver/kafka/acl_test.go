package kafka_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
)

// listed are the ACLs of docs/kafka.md, without some.
func listed(namespace string, but ...kfake.ACL) (acls []kfake.ACL) {
	for resource, operations := range map[kmsg.ACLResourceType][]kmsg.ACLOperation{
		kmsg.ACLResourceTypeTopic: {kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationCreate,
			kmsg.ACLOperationDelete,
			kmsg.ACLOperationAlter, kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs},
		kmsg.ACLResourceTypeGroup:           {kmsg.ACLOperationRead, kmsg.ACLOperationDelete, kmsg.ACLOperationDescribe},
		kmsg.ACLResourceTypeTransactionalId: {kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe},
	} {
		for _, o := range operations {
			if a := (kfake.ACL{Resource: resource, Operation: o}); !slices.Contains(but, a) {
				a.Name, a.Pattern, a.Allow = namespace, kmsg.ACLResourcePatternTypePrefixed, true
				acls = append(acls, a)
			}
		}
	}
	return append(acls, kfake.ACL{Resource: kmsg.ACLResourceTypeCluster, Name: "kafka-cluster",
		Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationDescribeConfigs, Allow: true})
}

func options(c *kfake.Cluster, user string) kafka.Options {
	return kafka.Options{Brokers: c.ListenAddrs(), Namespace: "mine.", Partitions: 1, InternalPartitions: 1,
		Transactions: true,
		SASL:         plain.Auth{User: user, Pass: canary}.AsMechanism()}
}

// TestListedACLs: a user with the ACLs of the documentation can do everything.
func TestListedACLs(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", "me", canary, listed("mine.")...))
	d, err := kafka.New(t.Context(), options(c, "me"))
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, d)
	publish(t, d, message("a", "k"), message("b", "k"), message("c", "k"))
	if v := put(t, d, driver.Write{Name: "n", If: driver.Absent}); get(t, d, "n").Revision != v.Revision {
		t.Errorf("%+v is not read", v)
	}
	later := message("later", "k")
	later.Delay = 100 * time.Millisecond
	publish(t, d, later)
	if _, err := d.Publish(t.Context(), followups("x", "y"), atomically); err != nil {
		t.Fatal(err)
	}
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Dead, 0)
	if err := d.Move(t.Context(), []driver.Move{{Target: target("a")}})[0]; err != nil {
		t.Fatal(err)
	}
	persist(t, s, emitting(receive(t, s), driver.Ack, "z"))
	for range 3 { // c, a and later
		settle(t, s, receive(t, s), driver.Ack, 0)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Reset(t.Context(), "orders", driver.DefaultGroup,
		driver.ResetOptions{To: driver.Position{From: driver.FromEnd}}); err != nil {
		t.Fatal(err)
	}
	fs, err := d.Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		if f.Severity == driver.SeverityError || f.Severity == driver.SeverityUnknown {
			t.Errorf("%+v", f)
		}
	}
	if err := d.DeleteTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
}

// TestUnauthorised: what is not allowed shows when it is asked for, with a hint, and nothing waits for ever.
func TestUnauthorised(t *testing.T) {
	t.Parallel()
	topic := func(o kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Operation: o}
	}
	group := kfake.ACL{Resource: kmsg.ACLResourceTypeGroup, Operation: kmsg.ACLOperationRead}
	c := fake(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", "me", canary, listed("mine.")...),
		kfake.User("PLAIN", "nobody", canary), kfake.User("PLAIN", "no-create", canary,
			listed("mine.", topic(kmsg.ACLOperationCreate))...),
		kfake.User("PLAIN", "no-write", canary, listed("mine.", topic(kmsg.ACLOperationWrite))...),
		kfake.User("PLAIN", "no-read", canary, listed("mine.", topic(kmsg.ACLOperationRead))...),
		kfake.User("PLAIN", "no-group", canary, listed("mine.", group)...))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, user := range []string{"nobody", "no-create"} {
		_, err := kafka.New(ctx, options(c, user))
		hinted(t, err, driver.ErrNotApplied)
	}
	d, err := kafka.New(ctx, options(c, "me"))
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, d)
	publish(t, d, message("a", "k"))
	put(t, d, driver.Write{Name: "n"})
	for _, user := range []string{"no-write", "no-read", "no-group"} {
		o := options(c, user)
		o.Transactions = false
		d, err := kafka.New(ctx, o)
		if err != nil {
			if user != "no-read" {
				t.Errorf("%s: %v", user, err)
			}
			hinted(t, err, driver.ErrNotApplied)
			continue
		}
		t.Cleanup(func() { end(t, d) })
		if user == "no-write" {
			hinted(t, write(t, d, driver.Write{Name: "n"}).Err, driver.ErrNotApplied)
			_, err = d.Publish(ctx, []*driver.Message{message("b", "k")}, driver.PublishOptions{})
		} else {
			_, err = d.Subscribe(ctx, driver.SubscribeOptions{Topic: "orders", Instance: "x"})
		}
		hinted(t, err, driver.ErrNotApplied)
	}
	s := subscribe(t, d, "x")
	if x := receive(t, s); x.ID != "a" {
		t.Errorf("received %s", x.ID)
	}
}
