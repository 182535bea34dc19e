package main

import (
	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/server"
	"github.com/ferrymq/ferry/telemetry/prom"
)

// mounts are what the servers of this command serve.
func mounts(b *ferry.Broker) ([]server.Mount, error) {
	metrics, err := metricsMount(b)
	if err != nil {
		return nil, err
	}
	g, err := gateway.New(b, gateway.Options{Logger: b.Logger()})
	if err != nil {
		return nil, err
	}
	return []server.Mount{
		metrics,
		{Path: "/v1/", Handler: g, MaxBody: g.MaxBody(), Programs: true, Stop: g.Close},
	}, nil
}

// metricsMount serves the figures of the broker to Prometheus.
func metricsMount(b *ferry.Broker) (server.Mount, error) {
	m, err := prom.New(prom.Options{Logger: b.Logger()})
	if err != nil {
		return server.Mount{}, err
	}
	collector, err := monitor.NewCollector(b, monitor.CollectorOptions{Processes: cluster.Processes})
	if err != nil {
		return server.Mount{}, err
	}
	if err := m.Watch(prom.Sources{Collector: collector}); err != nil {
		return server.Mount{}, err
	}
	return server.Mount{Path: "/metrics", Handler: m.Handler(), Scope: auth.Metrics}, nil
}
