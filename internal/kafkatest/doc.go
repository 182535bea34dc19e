// Package kafkatest starts real Apache Kafka brokers (KRaft) for tests: child processes on free loopback ports, in
// directories of their own.
//
//	s := kafkatest.Shared(t) // one broker for the whole test process: most cases
//	s := kafkatest.Single(t) // one of its own, to be killed and restarted
//	s := kafkatest.Three(t)  // three brokers that are controllers too, for fail-over
//
// A constructor returns when the brokers answer, and fails the test with the end of the log when they do not. Kafka or
// a JDK that is not installed is a failure too, never a skip: scripts/kafka.sh installs both.
//
// Nothing is left behind. The brokers of a test end with it. The shared one ends with the test process, for which its
// TestMain must say
//
//	goleak.VerifyTestMain(kafkatest.Main(m))
//
// and on Linux the kernel ends all of them when the test process dies in any other way.
package kafkatest
