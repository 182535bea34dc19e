package main

import (
	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/console"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/server"
	"github.com/ferrymq/ferry/telemetry/prom"
	"github.com/ferrymq/ferry/wecom"
)

// mounts are what the servers of this command serve. The options are those of the admin API, all but what every server
// has; the pipeline of WeCom may be nil.
func mounts(b *ferry.Broker, o admin.Options, service *wecom.Pipeline) ([]server.Mount, error) {
	metrics, err := metricsMount(b, service)
	if err != nil {
		return nil, err
	}
	o.Actions = auth.NewActions(b) // one for both: the admin API records what it counts
	g, err := gateway.New(b, gateway.Options{Logger: b.Logger(), Guards: o.Guards, Actions: o.Actions,
		Masked: func(topic string) bool { return admin.Masked(o.Masks, topic) }})
	if err != nil {
		return nil, err
	}
	o.WeCom = service
	all, err := adminMounts(b, o)
	if err != nil {
		return nil, err
	}
	pages, err := console.Handler(server.Nonce)
	if err != nil {
		return nil, err
	}
	all = append(all, metrics,
		server.Mount{Path: "/", Handler: pages, Public: true},
		server.Mount{Path: gateway.SpecPath, Handler: g, Public: true},
		server.Mount{Path: "/v1/", Handler: g, MaxBody: g.MaxBody(), Programs: true, Run: g.Run, Stop: g.Close})
	if service != nil {
		all = append(all, wecomMount(service))
	}
	return all, nil
}

// adminMounts serve the admin API, and to everybody what describes it.
func adminMounts(b *ferry.Broker, o admin.Options) ([]server.Mount, error) {
	o.Broker, o.Version = b, buildVersion()
	a, err := admin.New(o)
	if err != nil {
		return nil, err
	}
	return []server.Mount{
		{Path: "/api/", Handler: a, MaxBody: admin.MaxBody, Run: a.Run},
		{Path: "/admin/", Handler: a},
		{Path: admin.SpecPath, Handler: a, Public: true},
		{Path: admin.DocsPath, Handler: a, Public: true},
	}, nil
}

// metricsMount serves the figures of the broker to Prometheus.
func metricsMount(b *ferry.Broker, service *wecom.Pipeline) (server.Mount, error) {
	m, err := prom.New(prom.Options{Logger: b.Logger()})
	if err != nil {
		return server.Mount{}, err
	}
	collector, err := monitor.NewCollector(b, monitor.CollectorOptions{Processes: cluster.Processes})
	if err != nil {
		return server.Mount{}, err
	}
	sources := prom.Sources{Collector: collector}
	if service != nil {
		sources.WeCom = append(sources.WeCom, service)
	}
	if err := m.Watch(sources); err != nil {
		return server.Mount{}, err
	}
	return server.Mount{Path: "/metrics", Handler: m.Handler(), Scope: auth.Metrics}, nil
}
