package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Retain refuses every bound but none: Kafka itself would remove what groups have not settled, uncounted.
func (d *Driver) Retain(ctx context.Context, topic string, r driver.Retention) error {
	if err := r.Check(); err != nil {
		return err
	}
	if _, err := d.Retention(ctx, topic); err != nil {
		return err
	}
	if r != (driver.Retention{}) {
		return errNoRetention()
	}
	return nil
}

// Retention is none: what all groups have settled goes, or Keep later.
func (d *Driver) Retention(ctx context.Context, topic string) (driver.Retention, error) {
	_, err := d.topic(ctx, driver.CheckName("topic", topic), topic)
	return driver.Retention{}, err
}

// Trim has no retention to apply.
func (d *Driver) Trim(ctx context.Context, topic string) (driver.TrimReport, error) {
	if _, err := d.Retention(ctx, topic); err != nil {
		return driver.TrimReport{}, err
	}
	return driver.TrimReport{}, errNoRetention()
}

func errNoRetention() error {
	return driver.NewError(driver.ErrUnsupported, "topics on Kafka have no retention but Keep: what all groups have "+
		"settled goes within half a minute, or Keep later",
		"set Keep of the topic, and MaxMessages or MaxBytes to bound what is not settled", nil)
}
